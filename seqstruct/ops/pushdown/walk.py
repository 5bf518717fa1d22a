"""Steps of the vector pushdown automaton, one written after another into a table, each scaled by the total before it.

So no total falls, however many steps there are: what may leave the range of float64 is one step's total, or the inner
weight of runs that are next to nothing beside all others and grow by as much again.  That is seen from where such a run
pushes; of one that never does, what underflows is lost.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqstruct.ops.compiled import usable
from seqstruct.ops.pushdown.columns import LARGEST_INNER, SMALLEST_TOTAL, Columns, next_column, step_order
from seqstruct.ops.pushdown.compiled import compiled_step

CHUNK = 32  # times whose rows lie together


def first_table(columns: Columns, bottom: Tensor) -> Tensor:
    """A table with the column of time 0; bottom: B m, float64."""
    B, size = bottom.shape
    start = bottom.new_zeros(B, columns.symbols, columns.states, 1 + size)
    start[:, 0, 0, 0] = 1.0
    start[:, 0, 0, 1:] = bottom
    table = columns.opened(bottom.new_empty(B, columns.symbols, 0), 0)
    columns.column(columns.chunks(table, 1), 0).copy_(start.flatten(0, 1))
    return table


def write_step(
    columns: Columns, table: Tensor, inputs: Tensor, totals: Tensor, scaled: Tensor, done: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Write the column of time `done` + 1 into the table, which has room for it; no gradients.

    inputs: B A+m, log-weights and the pushed vector; totals: B, of the last column; scaled: B bool, whether the row of
    the batch has been in range so far.
    Returns the column's totals, 1 where out of range; readings B (Q S m), 0 there; and `scaled` anew.
    """
    step = compiled_step if usable(table, inputs) else _plain_step
    return step(columns, table, inputs, totals, scaled, done)


def growth(logits: Tensor, states: int, symbols: int) -> tuple[Tensor, Tensor]:
    """By how much each step multiplies the weight of all runs, and which rows of the batch stay in range.

    logits: B T A, float64.  Returns logarithms B T, which mean nothing in the other rows, and B bool.  No gradients.
    Cost: O(B T^3 S^2 Q^3) time, O(B T^2 S^2 Q^2) memory.
    """
    B, T, _ = logits.shape
    columns = Columns(states, symbols, 2, CHUNK, sys.maxsize)
    inputs = pad(logits.detach(), (0, 1))  # a vector of one number
    with torch.no_grad():
        table = first_table(columns, inputs.new_zeros(B, 1))
        totals, scaled, after = inputs.new_ones(B), inputs.new_ones(B, dtype=torch.bool), []
        for t in range(T):
            table = columns.opened(table, t + 1)
            totals, _, scaled = write_step(columns, table, inputs[:, t].contiguous(), totals, scaled, t)
            after.append(totals)
        return torch.stack(after, 1).log() + logits.logsumexp(2), scaled


def _plain_step(
    columns: Columns, table: Tensor, inputs: Tensor, totals: Tensor, scaled: Tensor, done: int
) -> tuple[Tensor, Tensor, Tensor]:
    """As `write_step`, in operators of PyTorch."""
    states, symbols, top = columns.states, columns.symbols, columns.states * columns.symbols
    B, size = len(inputs), columns.narrow - 1
    controls = inputs.index_select(1, step_order(states, symbols, size, inputs.device))
    logits, pushed = controls.split([controls.size(1) - size, size], 1)
    weights = torch.softmax(logits, 1).div_(totals.unsqueeze(1)).view(B, 2 * top + states, top)
    kept, push = weights.split([top + states, top], 1)
    chunks = columns.chunks(table, done + 2)
    column, _ = next_column(
        columns.column(chunks, done).reshape(B, top, columns.width(done)),
        columns.parts(chunks, done),
        kept,
        push,
        pad(pushed, (1, 0), value=1.0).unsqueeze(1),
        table.new_empty(B * symbols, states, done * states),
    )
    totals, largest = column[:, :, 0].sum(1), column[:, :, columns.narrow :].amax((1, 2))
    of_rows = zip(totals.tolist(), largest.tolist(), strict=True)
    if not all(total >= SMALLEST_TOTAL and inner <= LARGEST_INNER for total, inner in of_rows):
        scaled = scaled & (totals >= SMALLEST_TOTAL) & (largest <= LARGEST_INNER)
        column.masked_fill_(~scaled[:, None, None], 0.0)
        totals = totals.masked_fill(~scaled, 1.0)
    columns.put(chunks, done + 1, column)
    reading = column[:, :, 1 : columns.narrow] / totals.view(B, 1, 1)
    return totals, reading.view(B, symbols, states, size).transpose(1, 2).flatten(1), scaled
