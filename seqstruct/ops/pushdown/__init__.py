"""The differentiable vector pushdown automaton of DuSell and Chiang (2024, section 3.2.2): all its runs, weighted.

A run starts in state 0 with one stack element, symbol 0 and the bottom vector, and takes one transition a step.  In
state q with top (x, u), step t, with the vector v_t, offers: push to (r, y), which puts (y, v_t) on top; replace by
(r, y), which makes the top (y, u); pop to r, which uncovers the element below.  The bottom can be replaced, never
popped.  The weight of a run is the product of the weights exp(logit) of its transitions, and

    reading_t[r, y] = sum over runs ending in (r, y) of weight * top vector / sum over all runs of weight

after the transition of step t.  Adding a constant to all logits of a step changes nothing.  Readings with no run left
are zero.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.compiled import usable
from seqstruct.ops.pushdown.compiled import CompiledRuns
from seqstruct.ops.pushdown.layout import arrange, pad_pushdown_logits, pushed_vectors, scale, transition_count
from seqstruct.ops.pushdown.log import pushdown_log
from seqstruct.ops.pushdown.recurrence import SMALLEST_TOTAL
from seqstruct.ops.pushdown.scaled import ScaledRuns
from seqstruct.ops.pushdown.step import PushdownState, pushdown_initial, pushdown_reading, pushdown_step

__all__ = [
    "PushdownState",
    "pad_pushdown_logits",
    "pushdown_initial",
    "pushdown_reading",
    "pushdown_stack",
    "pushdown_step",
    "pushed_vectors",
    "transition_count",
]


def pushdown_stack(logits: Tensor, pushed: Tensor, bottom: Tensor, *, states: int, symbols: int) -> Tensor:
    """Readings of all steps of all runs, with a backward pass of its own (first derivatives only).

    logits: B T A, log-weights as laid out in `pushdown.layout`, any real numbers or -inf, not normalised.
    pushed: B T m, the vectors pushed, any real numbers; bottom: m, the vector of the bottom element.
    Returns readings B T (Q S m), (state, symbol, vector) with the vector fastest, in the data type of `pushed`.
    All runs are summed in float64, on the CPU in compiled form where that is asked for (`seqstruct.ops.compiled`).
    Raises ValueError if the shapes do not fit.
    """
    _check(logits, pushed, bottom, states, symbols)
    logits, vectors, bottom = logits.double(), pushed.double(), bottom.double().expand(pushed.size(0), -1)
    if pushed.size(1) == 0:
        return pushed.new_zeros(pushed.size(0), 0, states * symbols * pushed.size(2))
    weights = arrange((logits - scale(logits, states, symbols)).exp(), states, symbols)
    runs = CompiledRuns if usable(*weights, vectors, bottom) else ScaledRuns
    ending = runs.apply(*weights, vectors.transpose(0, 1), bottom)[:, :, 1:]  # B S T Q 1+m
    totals = ending[..., :1].sum((1, 3), keepdim=True)  # B 1 T 1 1
    scaled = (totals.detach() >= SMALLEST_TOTAL).all(2, keepdim=True)
    readings = torch.where(scaled, ending[..., 1:] / totals.where(scaled, torch.ones_like(totals)), 0.0)
    readings = readings.permute(0, 2, 3, 1, 4)  # B T Q S m
    rows = (~scaled.flatten()).nonzero().squeeze(1)
    if rows.numel():
        exact = pushdown_log(*(x.index_select(0, rows) for x in (logits, vectors, bottom)), states, symbols)
        readings = readings.index_copy(0, rows, exact)
    return readings.flatten(2).to(pushed.dtype)


def _check(logits: Tensor, pushed: Tensor, bottom: Tensor, states: int, symbols: int) -> None:
    count = transition_count(states, symbols)
    if pushed.dim() != 3 or logits.shape != (*pushed.shape[:2], count) or bottom.shape != pushed.shape[2:]:
        raise ValueError(
            f"expected logits B T {count}, pushed B T m and bottom m for {states} states and {symbols} symbols, "
            f"got {tuple(logits.shape)}, {tuple(pushed.shape)} and {tuple(bottom.shape)}"
        )
