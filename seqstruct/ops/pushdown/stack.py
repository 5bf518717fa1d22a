"""All readings of a sequence: scaled sums over all runs, in log space the rows that leave the range of float64."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.compiled import usable
from seqstruct.ops.gpu import host_may_look
from seqstruct.ops.opaque import opaque
from seqstruct.ops.pushdown.columns import SMALLEST_TOTAL
from seqstruct.ops.pushdown.compiled import compiled_runs
from seqstruct.ops.pushdown.launches import RunsByRow
from seqstruct.ops.pushdown.layout import arrange, scale, transition_count
from seqstruct.ops.pushdown.log import pushdown_log
from seqstruct.ops.pushdown.scaled import ScaledRuns


def pushdown_stack(logits: Tensor, pushed: Tensor, bottom: Tensor, *, states: int, symbols: int) -> Tensor:
    """Readings of all steps of all runs, with a backward pass of its own (first derivatives only).

    logits: B T A, log-weights as laid out in `pushdown.layout`, any real numbers or -inf, not normalised.
    pushed: B T m, the vectors pushed, any real numbers; bottom: m, the vector of the bottom element, or B m.
    Returns readings B T (Q S m), (state, symbol, vector) with the vector fastest, in the data type of `pushed`.
    All runs are summed in float64, on the CPU in compiled form where that is asked for (`seqstruct.ops.compiled`), on
    other devices in few operators.  Rows that leave the range of float64 are summed again in log space, for which the
    host looks at one number of each row, at the end; where it may not, as while a CUDA graph is captured, they are NaN.
    Raises ValueError if the shapes do not fit.
    """
    _check(logits, pushed, bottom, states, symbols)
    logits, vectors, bottom = logits.double(), pushed.double(), bottom.double().expand(pushed.size(0), -1)
    if pushed.size(1) == 0:
        return pushed.new_zeros(pushed.size(0), 0, states * symbols * pushed.size(2))
    weights = arrange((logits - scale(logits, states, symbols)).exp(), states, symbols)
    if usable(*weights, vectors, bottom):
        runs = compiled_runs
    else:
        runs = _scaled_runs if logits.device.type == "cpu" else RunsByRow.apply
    ending = runs(*weights, vectors.transpose(0, 1), bottom)[:, :, 1:]  # B S T Q 1+m
    totals = ending[..., :1].sum((1, 3), keepdim=True)  # B 1 T 1 1
    scaled = (totals.detach() >= SMALLEST_TOTAL).all(2, keepdim=True)
    readings = torch.where(scaled, ending[..., 1:] / totals.where(scaled, torch.ones_like(totals)), 0.0)
    readings = readings.permute(0, 2, 3, 1, 4)  # B T Q S m
    if not torch.compiler.is_compiling() and not host_may_look(readings):
        return readings.masked_fill(~scaled, torch.nan).flatten(2).to(pushed.dtype)
    readings = _exact_rows(readings.contiguous(), scaled.flatten(), logits, vectors, bottom)
    return readings.flatten(2).to(pushed.dtype)


def _fake_runs(moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> Tensor:
    steps, batch, symbols, states, _ = pops.shape
    return pops.new_empty(batch, symbols, steps + 1, states, 1 + pushed.size(2))


@opaque(_fake_runs)
def _scaled_runs(moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> Tensor:
    return ScaledRuns.apply(moves, pops, pushed, bottom)


@opaque(lambda readings, *_: readings.new_empty(readings.shape))
def _exact_rows(readings: Tensor, scaled: Tensor, logits: Tensor, vectors: Tensor, bottom: Tensor) -> Tensor:
    """Readings B T Q S m with those rows in log space that were not to be `scaled` (B bool)."""
    rows = (~scaled).nonzero().squeeze(1)
    if not rows.numel():
        return readings
    exact = pushdown_log(*(x.index_select(0, rows) for x in (logits, vectors, bottom)), *readings.shape[2:4])
    return readings.index_copy(0, rows, exact)


def _check(logits: Tensor, pushed: Tensor, bottom: Tensor, states: int, symbols: int) -> None:
    count = transition_count(states, symbols)
    fits = pushed.dim() == 3 and logits.shape == (*pushed.shape[:2], count)
    if not fits or bottom.shape not in (pushed.shape[2:], pushed.shape[::2]):
        raise ValueError(
            f"expected logits B T {count}, pushed B T m and bottom m or B m for {states} states and {symbols} symbols, "
            f"got {tuple(logits.shape)}, {tuple(pushed.shape)} and {tuple(bottom.shape)}"
        )
