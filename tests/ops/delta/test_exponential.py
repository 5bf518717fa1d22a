"""Exponential gates against their recurrence, and where that has no numbers."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from seqstruct.ops.delta import (
    empty_exponential,
    exponential_gates,
    naive,
    read_exponential,
)
from tests.ops.delta.forms import BATCH, HEADS, LENGTHS, K, V, assert_alike, leaves, random


@LENGTHS
def test_exponential_gates_are_the_recurrence(length: int, generator: torch.Generator) -> None:
    arguments = [random(generator, length, size) for size in (K, K, V)]
    arguments += [2 * random(generator, length), F.logsigmoid(2 * random(generator, length) + 1)]
    inputs = leaves(arguments)
    empty = empty_exponential(BATCH, HEADS, K, V, arguments[0])
    assert_alike(exponential_gates(empty, *arguments)[:1], (naive.exponential_gates(*arguments),), inputs)


def test_exponential_gates_beyond_the_range_of_numbers(generator: torch.Generator) -> None:
    """A constant added to all input gates scales C and n, so that the divisor's 1 no longer counts: no change then."""
    inputs = [random(generator, 50, size) for size in (K, K, V)]
    gates = random(generator, 50), F.logsigmoid(random(generator, 50))
    results = []
    for constant in (200.0, 5000.0):
        empty = empty_exponential(BATCH, HEADS, K, V, inputs[0])
        results.append(exponential_gates(empty, *inputs, gates[0] + constant, gates[1])[0])
    torch.testing.assert_close(*results, rtol=1e-9, atol=1e-9)
    assert results[0].isfinite().all()


@pytest.mark.parametrize("dtype, level", [(torch.float32, 110.0), (torch.float64, 800.0)])
def test_a_query_of_zeros_reads_zeros(dtype: torch.dtype, level: float, generator: torch.Generator) -> None:
    inputs = leaves([random(generator, 5, size).to(dtype) for size in (K, K, V)])
    query = inputs[0] * (torch.arange(5) != 3).to(dtype).unsqueeze(1)
    gates = torch.full((BATCH, HEADS, 5), level, dtype=dtype), torch.zeros(BATCH, HEADS, 5, dtype=dtype)
    readings, state = exponential_gates(empty_exponential(BATCH, HEADS, K, V, query), query, *inputs[1:], *gates)
    assert not readings[:, :, 3].any() and readings.isfinite().all()
    assert all(x.isfinite().all() for x in torch.autograd.grad(readings.sum(), inputs))
    assert not read_exponential(state, query[:, :, 3:4]).any()
