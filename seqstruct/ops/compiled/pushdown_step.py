"""One step of the vector pushdown automaton without gradients, in compiled form."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.compiled import call


def compiled_step(
    table: Tensor,
    inputs: Tensor,
    totals: Tensor,
    scaled: Tensor,
    limits: tuple[float, float],
    done: int,
    states: int,
    symbols: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Write the column of time `done` + 1 into a table B S L, as `PushdownState` has it, with room for that.

    inputs: B A+m, log-weights and the pushed vector; totals: B, of the last column; scaled: B bool, whether the row of
    the batch has been in range so far; limits: the smallest total and the largest inner weight in range.  All float64.
    Returns the column's totals, 1 where out of range; readings B (Q S m), 0 there; and `scaled` anew.
    """
    B, count = inputs.shape
    size = count - states * symbols * (2 * states * symbols + states)
    sizes = B, states, symbols, size, done, table.size(2)
    results = torch.empty_like(totals), totals.new_empty(B, states * symbols * size), torch.empty_like(scaled)
    given = inputs, inputs.stride(0), totals.contiguous(), scaled.contiguous()
    call("pushdown_step", *sizes, table, *given, *limits, *results)
    return results
