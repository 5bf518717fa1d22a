"""Sums over all runs of a vector pushdown automaton in log space: exact for any logits, and slow.

The recurrences are those of `pushdown.scaled`, with logarithms of weights and, in place of weighted sums of vectors,
their means: a mean is a convex combination of pushed vectors, so it needs neither scale nor sign.  An impossible cell
is -inf; the derivative through it is 0.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.pushdown.layout import arrange
from seqstruct.ops.semiring import shares

FLOOR = -1e300  # stands for -inf where it is subtracted, so that -inf - FLOOR stays -inf


def pushdown_log(logits: Tensor, pushed: Tensor, bottom: Tensor, states: int, symbols: int) -> Tensor:
    """Readings of all steps.

    logits: B T A log-weights; pushed: B T m; bottom: B m; all float64.  Returns B T Q S m.
    Cost: O(B S T^3 Q^3) exponentials, O(B S T^2 Q^2) memory.  First derivatives only.
    """
    B, T, size = pushed.shape
    moves, pops = arrange(logits, states, symbols)
    columns = _LogAround.apply(moves, pops).unflatten(2, (T, states)).unbind(2)  # BS TQ Q each
    top = states * symbols
    alpha = logits.new_full((B, top), -torch.inf)
    alpha[:, 0] = 0.0
    mean = bottom.unsqueeze(1).expand(B, top, size)
    alphas = [alpha.view(B * symbols, states)]
    means = [mean.reshape(B * symbols, states, size)]
    readings = []
    for t in range(T):
        push, replace = moves[t].transpose(1, 2).split(top, 2)  # B SQ SQ: [(y, r), (x, q)]
        terms = [alpha.unsqueeze(1) + push, alpha.unsqueeze(1) + replace]
        if t:
            popped = columns[t][:, : t * states].transpose(1, 2) + torch.cat(alphas[:t], 1).unsqueeze(1)
            terms.append(popped.reshape(B, top, t * states))
        alpha, share = shares(torch.cat(terms, 2), 2)
        push, replace, popped = share.split([top, top, t * states], 2)
        new = push.sum(2, keepdim=True) * pushed[:, t : t + 1] + torch.bmm(replace, mean)
        if t:
            popped = popped.reshape(B * symbols, states, t * states)
            new = new + torch.bmm(popped, torch.cat(means[:t], 1)).view(B, top, size)
        mean = new
        alphas.append(alpha.view(B * symbols, states))
        means.append(mean.view(B * symbols, states, size))
        weighted = shares(alpha, 1)[1].unsqueeze(2) * mean
        readings.append(weighted.unflatten(1, (symbols, states)).transpose(1, 2))
    return torch.stack(readings, 1)


def log_tables(
    moves: Tensor, pops: Tensor, sum_over: Callable[[Tensor, int], Tensor] = torch.logsumexp
) -> tuple[Tensor, Tensor]:
    """log X and log g of `pushdown.scaled`, each BS TQ TQ; column j - 1 is of step j; phase 1 there.

    moves: T B 2SQ SQ, pops: T B S Q Q, log-weights; sum_over: how the runs of an entry make one number, logsumexp or
    amax over an axis.
    """
    T, B, S, Q, _ = pops.shape
    top, end = S * Q, T * Q
    popped = moves.new_full((B * S, end, end), -torch.inf)
    around = moves.new_full((B * S, end, end), -torch.inf)

    def product(left: Tensor, right: Tensor) -> Tensor:  # N M K and N K L
        return sum_over(left.unsqueeze(3) + right.unsqueeze(1), 2)

    for k in range(T - 1, -1, -1):
        at, row = k * Q, slice(k * Q, (k + 1) * Q)
        popped[:, row, at : at + Q] = pops[k].flatten(0, 1)
        if k + 1 == T:
            continue
        after = popped[:, at + Q : at + 2 * Q, at + Q :].reshape(B, top, -1)
        carried = product(moves[k], after)  # B 2SQ columns
        around[:, row, at + Q :] = carried[:, :top].reshape(B * S, Q, -1)
        popped[:, row, at + Q :] = carried[:, top:].reshape(B * S, Q, -1)
        if k + 2 < T:
            rest = product(around[:, row, at + Q : end - Q], popped[:, at + 2 * Q :, at + 2 * Q :])
            popped[:, row, at + 2 * Q :] = sum_over(torch.stack([popped[:, row, at + 2 * Q :], rest]), 0)
    return popped, around


def _shares(left: Tensor, right: Tensor, total: Tensor) -> Tensor:
    """exp(left + right - total), N M K L: the share of a term N M K + N K L in a total N M L."""
    return (left.unsqueeze(3) + right.unsqueeze(1)).sub_(total.clamp(min=FLOOR).unsqueeze(2)).exp_()


class _LogAround(torch.autograd.Function):
    """log g of `log_tables`, with its derivatives."""

    @staticmethod
    def forward(ctx, moves: Tensor, pops: Tensor) -> Tensor:
        popped, around = log_tables(moves, pops)
        ctx.save_for_backward(moves, popped, around)
        return around

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor]:
        moves, popped, around = ctx.saved_tensors
        T, B, top = moves.shape[0], moves.shape[1], moves.shape[3]
        S, end = popped.size(0) // B, popped.size(1)
        Q = top // S
        d_around, d_popped = grad.clone(), torch.zeros_like(popped)
        d_moves, d_pops = torch.zeros_like(moves), moves.new_empty(T, B, S, Q, Q)
        for k in range(T):
            at, row = k * Q, slice(k * Q, (k + 1) * Q)
            now, value = d_popped[:, row, at:], popped[:, row, at:]
            if k:
                last = slice(at - Q, at)
                both = torch.stack([around[:, last, at:], popped[:, last, at:]]).unflatten(1, (B, S))
                d_both = torch.stack([d_around[:, last, at:], d_popped[:, last, at:]]).unflatten(1, (B, S))
                both, d_both = (x.transpose(0, 1).flatten(1, 3) for x in (both, d_both))  # B 2SQ columns
                flow = _shares(moves[k - 1], value.reshape(B, top, -1), both).mul_(d_both.unsqueeze(2))
                d_moves[k - 1] = flow.sum(3)
                now += flow.sum(1).view(B * S, Q, -1)
            if k > 1:
                before = slice(0, at - Q)
                flow = _shares(around[:, before, at - Q : at], value, popped[:, before, at:])
                now += flow.mul_(d_popped[:, before, at:].unsqueeze(2)).sum(1)
            d_pops[k] = now[..., :Q].unflatten(0, (B, S))
            if k + 2 < T:
                beyond = slice(at + 2 * Q, end)
                flow = _shares(around[:, row, at + Q : end - Q], popped[:, beyond, beyond], value[..., 2 * Q :])
                d_around[:, row, at + Q : end - Q] += flow.mul_(now[..., 2 * Q :].unsqueeze(2)).sum(3)
        return d_moves, d_pops
