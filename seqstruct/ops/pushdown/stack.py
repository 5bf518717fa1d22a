"""All readings of a sequence: scaled sums over all runs, anew where a row leaves the range of float64.

Weights of a step are divided by the largest sum of what one configuration goes on with.  Where that is not the one that
runs are in, the weight of all of them falls by a factor at each step, and leaves the range after hundreds.  Such rows
are divided by what the weight grows by, step by step (`pushdown.walk`); what leaves the range still is summed in log
space.
"""

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
from seqstruct.ops.pushdown.walk import growth

NUMBERS = 2**25  # in the tables of rows that are summed anew together, about


def pushdown_stack(logits: Tensor, pushed: Tensor, bottom: Tensor, *, states: int, symbols: int) -> Tensor:
    """Readings of all steps of all runs, with a backward pass of its own (first derivatives only).

    logits: B T A, log-weights as laid out in `pushdown.layout`, any real numbers or -inf, not normalised.
    pushed: B T m, the vectors pushed, any real numbers; bottom: m, the vector of the bottom element, or B m.
    Returns readings B T (Q S m), (state, symbol, vector) with the vector fastest, in the data type of `pushed`.
    All runs are summed in float64, on the CPU in compiled form where that is asked for (`seqstruct.ops.compiled`), on
    other devices in few operators.  Rows that leave the range of float64 are summed again, for which the host looks at
    one number of each row, at the end; where it may not, as while a CUDA graph is captured, they are NaN.  Of
    log-weights hundreds apart runs may be lost that fall out of range before the others fall behind them, and where a
    configuration that no run is in goes on with e^709 times the weight of all, gradients are NaN.
    Raises ValueError if the shapes do not fit.
    """
    _check(logits, pushed, bottom, states, symbols)
    logits, vectors, bottom = logits.double(), pushed.double(), bottom.double().expand(pushed.size(0), -1)
    if pushed.size(1) == 0:
        return pushed.new_zeros(pushed.size(0), 0, states * symbols * pushed.size(2))
    readings, scaled = _scaled_readings(logits - scale(logits, states, symbols), vectors, bottom, states, symbols)
    if not torch.compiler.is_compiling() and not host_may_look(readings):
        return readings.masked_fill(~scaled.view(-1, 1, 1, 1, 1), torch.nan).flatten(2).to(pushed.dtype)
    readings = _exact_rows(readings.contiguous(), scaled, logits, vectors, bottom)
    return readings.flatten(2).to(pushed.dtype)


def _scaled_readings(
    logits: Tensor, vectors: Tensor, bottom: Tensor, states: int, symbols: int
) -> tuple[Tensor, Tensor]:
    """Readings B T Q S m from scaled log-weights, and whether a row is in range, B bool; 0 where it is not."""
    weights = arrange(logits.exp(), states, symbols)
    if usable(*weights, vectors, bottom):
        runs = compiled_runs
    else:
        runs = _scaled_runs if logits.device.type == "cpu" else RunsByRow.apply
    ending = runs(*weights, vectors.transpose(0, 1), bottom)[:, :, 1:]  # B S T Q 1+m
    totals = ending[..., :1].sum((1, 3), keepdim=True)  # B 1 T 1 1
    seen = totals.detach()
    scaled = ((seen >= SMALLEST_TOTAL) & (seen <= 1 / SMALLEST_TOTAL)).all(2, keepdim=True)
    readings = torch.where(scaled, ending[..., 1:] / totals.where(scaled, torch.ones_like(totals)), 0.0)
    return readings.permute(0, 2, 3, 1, 4), scaled.flatten()


def _fake_runs(moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> Tensor:
    steps, batch, symbols, states, _ = pops.shape
    return pops.new_empty(batch, symbols, steps + 1, states, 1 + pushed.size(2))


@opaque(_fake_runs)
def _scaled_runs(moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> Tensor:
    return ScaledRuns.apply(moves, pops, pushed, bottom)


@opaque(lambda readings, *_: readings.new_empty(readings.shape))
def _exact_rows(readings: Tensor, scaled: Tensor, logits: Tensor, vectors: Tensor, bottom: Tensor) -> Tensor:
    """Readings B T Q S m with those rows anew that were not to be `scaled` (B bool)."""
    rows, (T, Q, S) = (~scaled).nonzero().squeeze(1), readings.shape[1:4]
    together = max(1, NUMBERS // (S * Q * T) ** 2)
    for some in rows.split(together) if rows.numel() else ():
        inputs = (x.index_select(0, some) for x in (logits, vectors, bottom))
        readings = readings.index_copy(0, some, _rows_anew(*inputs, Q, S))
    return readings


def _rows_anew(logits: Tensor, vectors: Tensor, bottom: Tensor, states: int, symbols: int) -> Tensor:
    """Readings B T Q S m of rows that need another scale, or none."""
    grown, scaled = growth(logits, states, symbols)
    good = scaled.nonzero().squeeze(1)
    parts = []
    while good.numel():
        inputs = (x.index_select(0, good) for x in (logits - grown.unsqueeze(2), vectors, bottom))
        readings, fits = _scaled_readings(*inputs, states, symbols)
        if fits.all():
            parts.append((good, readings))
            break
        good = good[fits]  # once more without the others, through which no gradient may go
    rest = torch.ones_like(scaled).index_fill(0, good, False).nonzero().squeeze(1)
    if rest.numel():
        inputs = (x.index_select(0, rest) for x in (logits, vectors, bottom))
        parts.append((rest, pushdown_log(*inputs, states, symbols)))
    rows, readings = (torch.cat(x) for x in zip(*parts, strict=True))
    return readings.index_select(0, rows.argsort())


def _check(logits: Tensor, pushed: Tensor, bottom: Tensor, states: int, symbols: int) -> None:
    count = transition_count(states, symbols)
    fits = pushed.dim() == 3 and logits.shape == (*pushed.shape[:2], count)
    if not fits or bottom.shape not in (pushed.shape[2:], pushed.shape[::2]):
        raise ValueError(
            f"expected logits B T {count}, pushed B T m and bottom m or B m for {states} states and {symbols} symbols, "
            f"got {tuple(logits.shape)}, {tuple(pushed.shape)} and {tuple(bottom.shape)}"
        )
