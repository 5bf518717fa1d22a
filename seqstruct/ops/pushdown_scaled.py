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
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class ScaledRuns(torch.autograd.Function):
    """F of all times, from weights whose rows sum to 1 at most.

    moves: T B 2SQ SQ and pops: T B S Q Q as in `Transitions`; pushed: T B m; bottom: B m.  All float64.
    Returns F: B S (T+1) Q (1+m).  O(B S T^3 Q^3) time, O(B S T^2 Q^2) memory.  First derivatives only.
    """

    @staticmethod
    def forward(ctx, moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> Tensor:
        popped, around = _inside(moves, pops)
        vectors = torch.cat([pushed.new_ones(*pushed.shape[:2], 1), pushed], 2)  # T B 1+m
        ending = _outside(moves, pops.size(2), around, vectors, bottom)
        ctx.save_for_backward(moves, popped, around, vectors, ending)
        return ending

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        moves, popped, around, vectors, ending = ctx.saved_tensors
        d_ending = _outside_adjoint(moves, around, vectors, grad)
        d_moves, d_around, d_pushed = _outside_gradients(moves, vectors, ending, d_ending)
        d_pops = _inside_adjoint(moves, popped, around, d_around, d_moves)
        return d_moves, d_pops, d_pushed, d_ending[:, 0, 0, 0, 1:]


def _inside(moves: Tensor, pops: Tensor) -> tuple[Tensor, Tensor]:
    """Phase 1.  X and g as matrices BS x TQ x TQ: row (k, state), column (j - 1, state)."""
    T, B, S, Q, _ = pops.shape
    top, end = S * Q, T * Q
    popped = moves.new_zeros(B * S, end, end)
    around = moves.new_zeros(B * S, end, end)
    last = moves.new_empty(B, top, 0)  # X[k+1], columns from k+1 on
    for k in range(T - 1, -1, -1):
        at, row = k * Q, slice(k * Q, (k + 1) * Q)
        carried = torch.bmm(moves[k], last)
        around[:, row, at + Q :].unflatten(0, (B, S)).copy_(carried[:, :top].unflatten(1, (S, Q)))
        new = moves.new_empty(B, S, Q, end - at)
        new[..., :Q] = pops[k]
        new[..., Q:] = carried[:, top:].unflatten(1, (S, Q))
        if k + 2 < T:
            rest = torch.bmm(around[:, row, at + Q : end - Q], popped[:, at + 2 * Q :, at + 2 * Q :])
            new.flatten(0, 1)[..., 2 * Q :] += rest
        popped[:, row, at:] = new.flatten(0, 1)
        last = new.flatten(1, 2)
    return popped, around


def _outside(moves: Tensor, symbols: int, around: Tensor, vectors: Tensor, bottom: Tensor) -> Tensor:
    """Phase 2: F, B S (T+1) Q (1+m)."""
    T, B, width = vectors.shape
    S, Q = symbols, moves.size(3) // symbols
    ending = moves.new_empty(B, S, T + 1, Q, width)
    flat = ending.view(B * S, (T + 1) * Q, width)
    last = moves.new_zeros(B, S * Q, width)
    last[:, 0, 0] = 1.0
    last[:, 0, 1:] = bottom
    ending[:, :, 0] = last.unflatten(1, (S, Q))
    across = moves.transpose(2, 3)
    for k in range(T):
        sources = torch.cat([last[:, :, :1] * vectors[k].unsqueeze(1), last], 1)  # B 2SQ 1+m
        last = torch.bmm(across[k], sources)
        if k:
            columns = around[:, : k * Q, k * Q : (k + 1) * Q].transpose(1, 2)
            last.view(B * S, Q, width).add_(torch.bmm(columns, flat[:, : k * Q]))
        ending[:, :, k + 1] = last.unflatten(1, (S, Q))
    return ending


def _outside_adjoint(moves: Tensor, around: Tensor, vectors: Tensor, grad: Tensor) -> Tensor:
    """Adjoint of F, with the upstream gradient in it."""
    B, S, times, Q, width = grad.shape
    T = times - 1
    top = S * Q
    adjoint = grad.clone(memory_format=torch.contiguous_format)
    flat = adjoint.view(B * S, times * Q, width)
    for k in range(T - 1, -1, -1):
        later = adjoint[:, :, k + 1].flatten(1, 2)  # B SQ 1+m
        into = torch.bmm(later, vectors[k].unsqueeze(2))  # B SQ 1: the push at k+1 reads alpha alone
        back = torch.bmm(moves[k], torch.cat([later, into], 2))  # B 2SQ 2+m
        now = adjoint[:, :, k]
        now += back[:, top:, :-1].unflatten(1, (S, Q))
        now[..., 0] += back[:, :top, -1].unflatten(1, (S, Q))
        if k + 2 <= T:
            row = around[:, k * Q : (k + 1) * Q, (k + 1) * Q :]
            flat[:, k * Q : (k + 1) * Q] += torch.bmm(row, flat[:, (k + 2) * Q :])
    return adjoint


def _outside_gradients(
    moves: Tensor, vectors: Tensor, ending: Tensor, d_ending: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """From F and its adjoint: the gradients of moves T B 2SQ SQ, of g BS TQ TQ and of the pushed vectors T B m."""
    B, S, times, Q, width = ending.shape
    T, top = times - 1, S * Q
    before = ending.permute(2, 0, 1, 3, 4)[:-1].reshape(T * B, top, width)
    after = d_ending.permute(2, 0, 1, 3, 4)[1:].reshape(T * B, top, width)
    alpha = before[:, :, :1]
    into = torch.bmm(after, vectors.reshape(T * B, width, 1))
    d_moves = moves.new_empty(T * B, 2 * top, top)
    d_moves[:, :top] = alpha * into.transpose(1, 2)
    d_moves[:, top:] = torch.bmm(before, after.transpose(1, 2))
    landed = torch.bmm(alpha.transpose(1, 2), moves.reshape(T * B, 2 * top, top)[:, :top])  # TB 1 SQ
    d_pushed = torch.bmm(landed, after[:, :, 1:]).view(T, B, width - 1)
    rows = ending.view(B * S, times * Q, width)[:, : T * Q]
    columns = d_ending.view(B * S, times * Q, width)[:, Q:]
    return d_moves.view(T, B, 2 * top, top), torch.bmm(rows, columns.transpose(1, 2)), d_pushed


def _inside_adjoint(moves: Tensor, popped: Tensor, around: Tensor, d_around: Tensor, d_moves: Tensor) -> Tensor:
    """Adjoint of phase 1, from the first row down; adds to d_moves and returns the gradient of pops T B S Q Q."""
    T, B, top = moves.shape[0], moves.shape[1], moves.shape[3]
    S = popped.size(0) // B
    Q, end = top // S, popped.size(1)
    d_popped = torch.zeros_like(popped)
    d_pops = moves.new_empty(T, B, S, Q, Q)
    across = moves.transpose(2, 3)
    both = None  # gradients of g[k-1] and X[k-1], columns from k on
    for k in range(T):
        at, row = k * Q, slice(k * Q, (k + 1) * Q)
        now = d_popped[:, row, at:]
        if k:
            now.unflatten(0, (B, S)).copy_(torch.bmm(across[k - 1], both).unflatten(1, (S, Q)))
        if k > 1:
            columns = around[:, : at - Q, at - Q : at].transpose(1, 2)
            now += torch.bmm(columns, d_popped[:, : at - Q, at:])
        d_pops[k] = now[..., :Q].unflatten(0, (B, S))
        if k + 1 == T:
            break
        if k + 2 < T:
            d_around[:, row, at + Q : end - Q] += torch.bmm(
                now[..., 2 * Q :], popped[:, at + 2 * Q :, at + 2 * Q :].transpose(1, 2)
            )
        both = moves.new_empty(B, 2, S, Q, end - at - Q)
        both[:, 0] = d_around[:, row, at + Q :].unflatten(0, (B, S))
        both[:, 1] = now[..., Q:].unflatten(0, (B, S))
        both = both.flatten(1, 3)
        after = popped[:, at + Q : at + 2 * Q, at + Q :].unflatten(0, (B, S)).flatten(1, 2)
        d_moves[k] += torch.bmm(both, after.transpose(1, 2))
    return d_pops
