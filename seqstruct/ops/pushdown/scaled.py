"""Sums over all runs of a vector pushdown automaton, in scaled probability space, float64.

Steps are 1 .. T and times 0 .. T.  With s, t, r, q states and x, y, z stack symbols,

* X[k,j][s z -> r]: weight of the runs from time k, in state s with top z, in which that element is popped at step j
  with state r after it;
* g[k,j][t y -> r] = sum_sz push_{k+1}[t y -> s z] X[k+1,j][s z -> r]: what is pushed at k+1 is popped at j, so that y
  is the top at both times k and j;
* X[k,j] = [j = k+1] pop_{k+1} + replace_{k+1} X[k+1,j] + sum_{k<i<j} g[k,i] X[i,j], from the last row up (phase 1);
* F_j[r y]: weight of all runs of j steps that end in (r, y), beside it the same weights times the top vector:
  F_j = push_j^T (alpha_{j-1} (x) (1, v_j)) + replace_j^T F_{j-1} + sum_{k<=j-2} g[k,j]^T F_k, alpha the first column
  of F (phase 2).  The bottom is never popped because F_0 starts above it.

This is the recurrence of DuSell and Chiang (2023) turned around: X runs from the end, so that neither the table of
inner weights nor the one of vectors is needed.

Times are cut into blocks of b, and the matrices X and g, whose rows are (k, state) and columns (j, state) for every
batch row and symbol, into tiles.  The tiles of one block diagonal d lie together, [block row, B S, b Q, b Q], and are
filled together, row by row from the bottom; products with tiles strictly between are ordinary matrix products.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqstruct.ops.first_derivatives import first_derivatives_only

BLOCK = 16  # times in a block, about


class ScaledRuns(torch.autograd.Function):
    """F of all times, from weights whose rows sum to 1 at most.

    moves: T B 2SQ SQ and pops: T B S Q Q as in `Transitions`; pushed: T B m; bottom: B m.  All float64.
    Returns F: B S (T+1) Q (1+m).  O(B S T^3 Q^3) time, O(B S T^2 Q^2) memory.  First derivatives only.
    """

    @staticmethod
    def forward(ctx, moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> Tensor:
        T, B, S, Q, _ = pops.shape
        blocks = -(-(T + 1) // BLOCK)
        block = -(-(T + 1) // blocks)
        steps = _by_place(moves, blocks, block)
        popped, around = _inside(steps, pops)
        vectors = torch.cat([pushed.new_ones(T, B, 1), pushed], 2)  # T B 1+m
        ending = _outside(moves, around, vectors, bottom, block)
        ctx.save_for_backward(moves, steps, vectors, ending, *popped, *around)
        return _by_time(ending, T + 1, Q).unflatten(2, (B, S)).permute(2, 3, 0, 1, 4)

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor):
        moves, steps, vectors, ending, *tiles = ctx.saved_tensors
        popped, around = tiles[: len(tiles) // 2], tiles[len(tiles) // 2 :]
        B, S, times, Q, width = grad.shape
        blocks, block, T = len(popped), steps.size(0), times - 1
        upstream = pad(grad, (0, 0, 0, 0, 0, blocks * block - times)).unflatten(2, (blocks, block))
        adjoint = upstream.permute(2, 0, 1, 3, 4, 5).reshape(blocks, B * S, block * Q, width)
        _outside_adjoint(moves, around, vectors, adjoint, block)
        d_around = [
            torch.bmm(ending[: blocks - d].flatten(0, 1), adjoint[d:].flatten(0, 1).transpose(1, 2))
            for d in range(blocks)
        ]
        by_time = (_by_time(x, times, Q).transpose(1, 2).reshape(times, B, S * Q, width) for x in (ending, adjoint))
        d_moves, d_pushed = _outside_gradients(moves, vectors, *by_time)
        inside = _inside_adjoint(steps, popped, around, d_around, S)
        d_steps, d_pops = (x.transpose(0, 1).flatten(0, 1)[:T] for x in inside)  # by place, to by step
        return d_moves.add_(d_steps), d_pops, d_pushed, adjoint[0].view(B, S, block, Q, width)[:, 0, 0, 0, 1:]


def _by_place(weights: Tensor, blocks: int, block: int) -> Tensor:
    """Weights by step, T .., as block blocks ..: by the place of time k = step - 1 in its block; 0 past the end."""
    room = weights.new_zeros(blocks * block, *weights.shape[1:])
    room[: weights.size(0)] = weights
    return room.unflatten(0, (blocks, block)).transpose(0, 1).contiguous()


def _by_time(blocked: Tensor, times: int, states: int) -> Tensor:
    """F as blocks BS bQ 1+m, to times Q BS 1+m."""
    parts = blocked.unflatten(2, (-1, states)).permute(0, 2, 3, 1, 4)  # blocks b Q BS 1+m
    return parts.flatten(0, 1)[:times]


def _inside(steps: Tensor, pops: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Phase 1.  The tiles of X and of g: for each block diagonal d a tensor (blocks-d) BS x bQ x bQ.

    steps: b blocks B 2SQ SQ.  Entries on and below the diagonal of X are 0, of g also those just above it.
    """
    block, blocks, B, _, top = steps.shape
    S, Q = pops.shape[2:4]
    side, stride = block * Q, B * S
    popped: list[Tensor] = []
    around: list[Tensor] = []
    single = _by_place(pops, blocks, block).flatten(1, 3)  # b (blocks B S) Q Q
    for d in range(blocks):
        tiles = (blocks - d) * stride
        x, g = (steps.new_empty(tiles, side, side) if d else steps.new_zeros(tiles, side, side) for _ in range(2))
        between = _sum_of_products((around[e][:tiles], popped[d - e][e * stride :]) for e in range(1, d))
        last = popped[d - 1][stride:, :Q].reshape(-1, top, side) if d else None  # X[k+1]
        for i in range(block - 1 if d else block - 2, -1, -1):
            row, beyond = slice(i * Q, (i + 1) * Q), slice((i + 2) * Q, side)
            carried = None
            if last is not None:
                carried = torch.bmm(steps[i, : blocks - d].flatten(0, 1), last)  # (blocks-d) B 2SQ side
                g[:, row] = carried[:, :top].reshape(tiles, Q, side)
                new = carried[:, top:].reshape(tiles, Q, side)
            else:
                new = steps.new_zeros(tiles, Q, side)
            if between is not None:
                new += between[:, row]
            new.baddbmm_(g[:, row], popped[0][d * stride :] if d else x)
            if d and i + 2 < block:
                new.baddbmm_(around[0][:tiles, row, beyond], x[:, beyond])
            if d == 0:
                new[:, :, (i + 1) * Q : (i + 2) * Q] += single[i]
            elif d == 1 and i + 1 == block:
                new[:, :, :Q] += single[i, :tiles]
            x[:, row] = new
            last = new.view(-1, top, side)
        popped.append(x)
        around.append(g)
    return popped, around


def _sum_of_products(pairs: Iterable[tuple[Tensor, Tensor]]) -> Tensor | None:
    """The sum of batched products; None if there are none."""
    total = None
    for left, right in pairs:
        total = torch.bmm(left, right) if total is None else total.baddbmm_(left, right)
    return total


def _outside(moves: Tensor, around: list[Tensor], vectors: Tensor, bottom: Tensor, block: int) -> Tensor:
    """Phase 2: F as blocks BS bQ 1+m, zero past time T."""
    T, B, width = vectors.shape
    stride, side = around[-1].shape[:2]
    Q = side // block
    ending = moves.new_zeros(len(around), stride, side, width)
    last = moves.new_zeros(B, moves.size(3), width)  # F_{j-1}
    last[:, 0, 0] = 1.0
    last[:, 0, 1:] = bottom
    ending[0, :, :Q] = last.view(stride, Q, width)
    across = moves.unflatten(2, (2, -1)).transpose(3, 4).flatten(2, 3)  # T B 2SQ SQ: [(y, r), (x, q)] twice
    top, before = moves.size(3), None
    for j in range(1, T + 1):
        J, i = divmod(j, block)
        if i == 0:
            before = _sum_of_products(
                (around[J - K][K * stride : (K + 1) * stride].transpose(1, 2), ending[K]) for K in range(J)
            )
        moved = torch.bmm(across[j - 1], last)  # B 2SQ 1+m
        last = torch.addcmul(moved[:, top:], moved[:, :top, :1], vectors[j - 1].unsqueeze(1))
        new = last.view(stride, Q, width)
        row = slice(i * Q, (i + 1) * Q)
        if before is not None:
            new += before[:, row]
        if i > 1:
            inner = around[0][J * stride : (J + 1) * stride, : (i - 1) * Q, row]
            new.baddbmm_(inner.transpose(1, 2), ending[J, :, : (i - 1) * Q])
        ending[J, :, row] = new
    return ending


def _outside_adjoint(moves: Tensor, around: list[Tensor], vectors: Tensor, adjoint: Tensor, block: int) -> None:
    """Turn the upstream gradient of F, blocks BS bQ 1+m, into its adjoint, in place."""
    T, B, width = vectors.shape
    stride, side = adjoint.shape[1:3]
    Q, top = side // block, moves.size(3)
    later = None
    for k in range(T, -1, -1):
        K, i = divmod(k, block)
        here = slice(K * stride, (K + 1) * stride)
        if i + 1 == block or k == T:
            total = _sum_of_products((around[J - K][here], adjoint[J]) for J in range(K + 1, adjoint.size(0)))
            if total is not None:
                adjoint[K] += total
        row = slice(i * Q, (i + 1) * Q)
        now = adjoint[K, :, row].contiguous()
        if later is not None:
            into = torch.bmm(later, vectors[k].unsqueeze(2))  # B SQ 1: the push at k+1 reads alpha alone
            back = torch.bmm(moves[k], torch.cat([later, into], 2))  # B 2SQ 2+m
            flat = now.view(B, top, width)
            flat += back[:, top:, :-1]
            flat[:, :, 0] += back[:, :top, -1]
        if i + 2 < block:
            beyond = slice((i + 2) * Q, side)
            now.baddbmm_(around[0][here, row, beyond], adjoint[K, :, beyond])
        adjoint[K, :, row] = now
        later = now.view(B, top, width)


def _outside_gradients(moves: Tensor, vectors: Tensor, ending: Tensor, adjoint: Tensor) -> tuple[Tensor, Tensor]:
    """From F and its adjoint, T+1 B SQ 1+m: the gradients of moves T B 2SQ SQ and of the pushed vectors T B m."""
    T, B, width = vectors.shape
    top = moves.size(3)
    before, after = ending[:-1].flatten(0, 1), adjoint[1:].flatten(0, 1)
    alpha = before[:, :, :1]
    into = torch.bmm(after, vectors.view(T * B, width, 1))
    d_moves = moves.new_empty(T * B, 2 * top, top)
    torch.mul(alpha, into.transpose(1, 2), out=d_moves[:, :top])
    d_moves[:, top:] = torch.bmm(before, after.transpose(1, 2))
    landed = torch.bmm(alpha.transpose(1, 2), moves.view(T * B, 2 * top, top)[:, :top])  # TB 1 SQ
    return d_moves.view(T, B, 2 * top, top), torch.bmm(landed, after[:, :, 1:]).view(T, B, width - 1)


def _inside_adjoint(
    steps: Tensor, popped: list[Tensor], around: list[Tensor], d_around: list[Tensor], symbols: int
) -> tuple[Tensor, Tensor]:
    """Phase 1 run backwards: gradients of steps b blocks B 2SQ SQ and of pops b blocks B S Q Q; changes d_around.

    Where X and g are zero by their shape adjoints may hold anything: only those zeros are multiplied by them.
    """
    block, blocks, B, _, top = steps.shape
    S, Q = symbols, top // symbols
    side, stride = block * Q, B * S
    d_popped = [torch.zeros_like(x) for x in popped]
    d_steps = torch.zeros_like(steps)
    d_single = steps.new_zeros(block, blocks * stride, Q, Q)
    across = steps.transpose(3, 4)
    for d in range(blocks - 1, -1, -1):
        x, g, dx = popped[d], around[d], d_popped[d]
        tiles, right = x.size(0), popped[0][d * stride :].transpose(1, 2)
        for i in range(block if d else block - 1):
            row, after = slice(i * Q, (i + 1) * Q), slice((i + 1) * Q, (i + 2) * Q)
            now = dx[:, row]
            if i > 1:
                now += torch.bmm(around[0][:tiles, : (i - 1) * Q, row].transpose(1, 2), dx[:, : (i - 1) * Q])
            d_row = torch.baddbmm(d_around[d][:, row], now, right)  # of g
            if d == 0:
                d_single[i] = now[:, :, after]
            elif d == 1 and i + 1 == block:
                d_single[i, :tiles] = now[:, :, :Q]
            last, d_last = (
                (x[:, after], dx[:, after])
                if i + 1 < block
                else (popped[d - 1][stride:, :Q], d_popped[d - 1][stride:, :Q])
            )
            both = torch.stack([d_row.unflatten(0, (-1, S)), now.unflatten(0, (-1, S))], 1).flatten(1, 3)
            d_last += torch.bmm(across[i, : blocks - d].flatten(0, 1), both).view(tiles, Q, side)
            part = d_steps[i, : blocks - d].flatten(0, 1)
            part.baddbmm_(both, last.reshape(-1, top, side).transpose(1, 2))
        if d:
            d_around[0][:tiles].baddbmm_(dx, x.transpose(1, 2))
            d_popped[0][d * stride :].baddbmm_(g.transpose(1, 2), dx)
        for e in range(1, d):
            d_around[e][:tiles].baddbmm_(dx, popped[d - e][e * stride :].transpose(1, 2))
            d_popped[d - e][e * stride :].baddbmm_(around[e][:tiles].transpose(1, 2), dx)
    return d_steps, d_single.view(block, blocks, B, S, Q, Q)
