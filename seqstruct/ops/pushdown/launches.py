"""The sums of `pushdown.scaled` in few operators, for devices where each is a launch: whole rows of the tables at once.

X and g are one table each, BS T+1 Q (T+1)Q, of which the empty half is multiplied too: up to three times the arithmetic
of tiles, in a quarter of the operators.  Phases and letters as there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.pushdown.scaled import _outside_gradients


class RunsByRow(torch.autograd.Function):
    """As `ScaledRuns`, of which it takes the arguments and gives the result."""

    @staticmethod
    def forward(ctx: Any, moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> Tensor:
        T, B, S, Q, _ = pops.shape
        top, end = S * Q, (T + 1) * Q
        vectors = torch.cat([pushed.new_ones(T, B, 1), pushed], 2)  # T B 1+m
        popped, around = _inside(moves, pops)
        ending = moves.new_zeros(B * S, T + 1, Q, vectors.size(2))
        rows, flat = ending.unbind(1), ending.view(B * S, end, -1)
        last = moves.new_zeros(B, top, vectors.size(2))  # F_{j-1}
        last[:, 0, 0] = 1.0
        last[:, 0, 1:] = bottom
        rows[0].copy_(last.view(B * S, Q, -1))
        columns = around.view(B * S, end, T + 1, Q).permute(2, 0, 3, 1).unbind(0)  # BS Q (T+1)Q
        push, replace = (x.transpose(2, 3).unbind(0) for x in moves.split(top, 2))
        for j, vector in enumerate(vectors.unsqueeze(2).unbind(0), 1):
            landed = torch.bmm(push[j - 1], last[:, :, :1])
            last = torch.bmm(replace[j - 1], last).baddbmm_(landed, vector)
            new = last.view(B * S, Q, -1).baddbmm_(columns[j], flat)
            rows[j].copy_(new)
        ctx.save_for_backward(moves, vectors, ending, popped, around)
        return ending.unflatten(0, (B, S))

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        moves, vectors, ending, popped, around = ctx.saved_tensors
        B, S, times, Q, width = grad.shape
        top, end = S * Q, times * Q
        adjoint = torch.zeros_like(ending)
        rows, flat = adjoint.unbind(1), adjoint.view(B * S, end, width)
        by_time = grad.permute(2, 0, 1, 3, 4).reshape(times, B, top, width)
        upstream, into = by_time.unbind(0), vectors.unsqueeze(3).unbind(0)
        push, replace = (x.unbind(0) for x in moves.split(top, 2))
        ahead = around.unbind(1)  # BS Q (T+1)Q
        later = upstream[-1]
        rows[-1].copy_(later.view(B * S, Q, width))
        for k in range(times - 2, -1, -1):
            now = torch.baddbmm(upstream[k], replace[k], later)
            now[:, :, :1].baddbmm_(push[k], torch.bmm(later, into[k]))  # the push at k+1 reads alpha alone
            now.view(B * S, Q, width).baddbmm_(ahead[k], flat)
            rows[k].copy_(now.view(B * S, Q, width))
            later = now
        both = (x.unflatten(0, (B, S)).permute(2, 0, 1, 3, 4).reshape(times, B, top, width) for x in (ending, adjoint))
        d_moves, d_pushed = _outside_gradients(moves, vectors, *both)
        d_around = torch.bmm(ending.view(B * S, end, width), flat.mT).view_as(around)
        d_steps, d_pops = _inside_adjoint(moves, popped, around, d_around, S)
        return d_moves.add_(d_steps), d_pops, d_pushed, adjoint.view(B, S, times, Q, width)[:, 0, 0, 0, 1:]


def _inside(moves: Tensor, pops: Tensor) -> tuple[Tensor, Tensor]:
    """Phase 1: X and g."""
    T, B, S, Q, _ = pops.shape
    top, end = S * Q, (T + 1) * Q
    popped = moves.new_zeros(B * S, T + 1, Q, end)
    rows, flat = popped.unbind(1), popped.view(B * S, end, end)
    push, replace = (x.unbind(0) for x in moves.split(top, 2))
    single = pops.flatten(1, 2).unbind(0)
    around = [rows[-1]]  # of time T, zero
    last = moves.new_zeros(B, top, end)  # X[k+1]
    for k in range(T - 1, -1, -1):
        g = torch.bmm(push[k], last).view(B * S, Q, end)
        last = torch.bmm(replace[k], last)
        new = last.view(B * S, Q, end).baddbmm_(g, flat)
        new.narrow(2, (k + 1) * Q, Q).add_(single[k])
        rows[k].copy_(new)
        around.append(g)
    return popped, torch.stack(around[::-1], 1)


def _inside_adjoint(
    moves: Tensor, popped: Tensor, around: Tensor, d_around: Tensor, symbols: int
) -> tuple[Tensor, Tensor]:
    """Phase 1 run backwards: gradients of moves T B 2SQ SQ and pops T B S Q Q."""
    T, B, _, top = moves.shape
    S, Q, end = symbols, top // symbols, popped.size(3)
    adjoint = torch.zeros_like(popped)
    rows, flat = adjoint.unbind(1), adjoint.view(-1, end, end)
    across = popped.view(-1, end, end).mT
    columns = around.view(-1, end, T + 1, Q).permute(2, 0, 3, 1).unbind(0)  # BS Q (T+1)Q
    push, replace = (x.transpose(2, 3).unbind(0) for x in moves.split(top, 2))
    given, changes = d_around.unbind(1), []
    for k in range(T):
        now = torch.bmm(columns[k], flat)
        by_batch = now.view(B, top, end)
        if k:
            d_push, d_replace = changes[-1]
            by_batch.baddbmm_(push[k - 1], d_push).baddbmm_(replace[k - 1], d_replace)
        rows[k].copy_(now)
        changes.append((torch.baddbmm(given[k], now, across).view(B, top, end), by_batch))
    pushes, replacements = (torch.stack(x) for x in zip(*changes, strict=True))  # T B SQ (T+1)Q
    after = popped[:, 1:].unflatten(0, (B, S)).permute(2, 0, 1, 3, 4).reshape(T, B, top, end).mT
    d_pops = replacements.view(T, B, S, Q, T + 1, Q).diagonal(1, 0, 4).movedim(-1, 0)[:T]
    return torch.cat([pushes @ after, replacements @ after], 2), d_pops
