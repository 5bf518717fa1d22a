"""The vector pushdown automaton by its recurrence, over any semiring (DuSell and Chiang 2023, section 4; 2024, 3.2.2).

Times are 0 .. T; q, s, u, r are states and x, z, y symbols.

* inner[i,t][q x -> r y]: runs from time i in (q, x) that push at step i + 1 and have that element, replaced or not, on
  top in (r, y) at time t;
* popped[k,t][u y -> r]: those of inner[k,t-1] that pop the element at step t, so that y is the top again.

    inner[t-1,t] = push_t
    inner[i,t]   = inner[i,t-1] replace_t + sum_{i<k<t-1} inner[i,k] popped[k,t]
    popped[k,t]  = inner[k,t-1] pop_t
    all[t]       = sum_{i<t} all[i] inner[i,t]

The bottom is pushed before time 0, inner[-1,0] leading to state 0 and symbol 0.  What inner[i,t] has on top is the
vector of step i + 1, so that weights by i are all that readings need.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.semiring import LogSemiring, shares


def naive_tops(logits: Tensor, semiring: LogSemiring, *, states: int, symbols: int) -> list[Tensor]:
    """Of the times 0 .. T the weights of all runs by what they have on top: * B t+1 QS, (pushed at, (state, symbol)).

    logits: B T A, log-weights as laid out in `layout`.  Pushed at 0: the bottom.  *: the semiring's components.
    O(T^3) sums of O(B S^2 Q^3) terms.
    """
    top, product = states * symbols, semiring.product
    steps = semiring.lift(logits).unflatten(-1, (top, -1)).unbind(-3)  # * B QS A/QS each

    def uncovered(inner: Tensor, popped: Tensor) -> Tensor:  # .. N uy and .. uy r, to .. N ry
        inner = inner.unflatten(-1, (states, symbols)).transpose(-1, -2).unsqueeze(-3)  # .. N 1 y u
        popped = popped.unflatten(-2, (states, symbols)).transpose(-1, -3).unsqueeze(-4)  # .. 1 r y u
        return semiring.sum(semiring.times(inner, popped), -1).flatten(-2)

    one, zero = (new((len(logits), 1, n), logits) for new, n in ((semiring.one, 1), (semiring.zero, top - 1)))
    inner, before, tops = {(-1, 0): torch.cat([one, zero], -1)}, {-1: one}, []
    for t in range(len(steps) + 1):
        if t:
            push, replace, pop = steps[t - 1].split([top, top, states], -1)
            popped = {k: product(inner[k, t - 1], pop) for k in range(t - 1)}
            for i in range(-1, t - 1):
                terms = [uncovered(inner[i, k], popped[k]) for k in range(i + 1, t - 1)]
                inner[i, t] = semiring.sum(torch.stack([product(inner[i, t - 1], replace), *terms], -1), -1)
            inner[t - 1, t] = push
        tops.append(torch.cat([product(before[i], inner[i, t]) for i in range(-1, t)] if t else [inner[-1, 0]], -2))
        before[t] = semiring.sum(tops[t].transpose(-1, -2), -1).unsqueeze(-2)
    return tops


def naive_readings(logits: Tensor, pushed: Tensor, bottom: Tensor, *, states: int, symbols: int) -> Tensor:
    """Readings B T (Q S m) of all steps, as of `pushdown_stack`, whose arguments these are."""
    vectors = torch.cat([bottom.expand(len(pushed), 1, -1), pushed], 1)
    readings = []
    for (weights,) in naive_tops(logits, LogSemiring(), states=states, symbols=symbols)[1:]:
        share = shares(weights.flatten(1), 1)[1].view_as(weights)  # B t+1 QS
        readings.append(torch.bmm(share.transpose(1, 2), vectors[:, : weights.size(1)]).flatten(1))
    return torch.stack(readings, 1)
