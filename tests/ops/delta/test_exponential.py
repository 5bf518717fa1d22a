"""Exponential gates against their recurrence, and where that has no numbers."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from seqstruct.ops.delta import (
    ExponentialMemory,
    empty_exponential,
    exponential_gates,
    naive,
    read_exponential,
    write_exponential,
)
from tests.ops.delta.forms import BATCH, EXACT, HEADS, LENGTHS, K, V, assert_alike, leaves, random


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


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_exponential_gates_resume_and_skip(cut: int, generator: torch.Generator) -> None:
    inputs = [random(generator, 75, size) for size in (K, K, V)]
    inputs += [3 * random(generator, 75), F.logsigmoid(random(generator, 75))]
    skipped = torch.zeros(75, dtype=torch.bool)
    skipped[[0, 1, 30, 74]] = True
    inputs[3], inputs[4] = inputs[3].masked_fill(skipped, -math.inf), inputs[4].masked_fill(skipped, 0.0)
    empty = empty_exponential(BATCH, HEADS, K, V, inputs[0])
    wanted, last = exponential_gates(empty, *inputs)
    state, parts = empty, []
    for part in (slice(0, cut), slice(cut, 75)):
        reading, state = exponential_gates(state, *[x[:, :, part] for x in inputs])
        parts.append(reading)
    torch.testing.assert_close(torch.cat(parts, 2), wanted, **EXACT)
    assert torch.equal(wanted[:, :, :2], torch.zeros_like(wanted[:, :, :2]))
    alone = write_exponential(ExponentialMemory(*(x.clone() for x in empty)), *inputs[1:])
    for other in (state, alone):
        torch.testing.assert_close(other, last, **EXACT)
    torch.testing.assert_close(read_exponential(alone, inputs[0][:, :, -1:]), wanted[:, :, -1:], **EXACT)
