"""The chunked forms against the recurrences, at lengths around and beyond several chunks."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.delta import (
    Buckets,
    ExponentialMemory,
    empty_exponential,
    exponential_gates,
    gated_delta_rule,
    gated_slots,
    log_linear,
    naive,
    read_buckets,
    read_exponential,
    write,
    write_buckets,
    write_exponential,
)
from seqstruct.ops.delta.chunks import CHUNK

EXACT = {"rtol": 1e-10, "atol": 1e-10}
BATCH, HEADS, K, V = 2, 3, 4, 5
LENGTHS = pytest.mark.parametrize("length", [1, 7, CHUNK, 3 * CHUNK + 7])


def random(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(BATCH, HEADS, *shape, generator=generator, dtype=torch.float64)


def case(length: int, decay: str, corrected: bool, steps: int, generator: torch.Generator) -> list:
    """Arguments of `gated_delta_rule`; some decays are so strong that nothing is left."""
    log_decay = {"none": None, "scalar": random(generator, length), "channels": random(generator, length, K)}[decay]
    if log_decay is not None:
        log_decay = -torch.exp(3 * log_decay)
        log_decay[:, 1, length // 2] = -900.0
    beta = 2 * random(generator, length * steps).sigmoid() if corrected else None
    key = F.normalize(random(generator, length * steps, K), dim=-1)
    value = random(generator, length * steps, V)
    return [random(generator, length, K), key, value, log_decay, beta, random(generator, K, V), steps]


def leaves(arguments: list) -> list[Tensor]:
    return [x.requires_grad_() for x in arguments if isinstance(x, Tensor)]


def assert_alike(found: tuple[Tensor, ...], wanted: tuple[Tensor, ...], inputs: list[Tensor]) -> None:
    """Values, and gradients of a fixed projection of all of them."""
    gradients = []
    for results in (found, wanted):
        total = sum((x * torch.linspace(-1, 2, x.numel()).view(x.shape)).sum() for x in results)
        gradients.append(torch.autograd.grad(total, inputs))
    for ours, theirs in zip((*found, *gradients[0]), (*wanted, *gradients[1]), strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)


CASES = pytest.mark.parametrize(
    "decay, corrected, steps",
    [(decay, corrected, steps) for decay in ("none", "scalar") for corrected in (False, True) for steps in (1, 2, 3)]
    + [("channels", False, 1), ("channels", True, 1)],
)


@LENGTHS
@CASES
def test_chunks_are_the_recurrence(
    length: int, decay: str, corrected: bool, steps: int, generator: torch.Generator
) -> None:
    arguments = case(length, decay, corrected, steps, generator)
    inputs = leaves(arguments)
    assert_alike(gated_delta_rule(*arguments), naive.gated_delta_rule(*arguments), inputs)


@CASES
@pytest.mark.parametrize("length", [1, 3 * CHUNK + 7])
def test_writing_alone_is_the_last_memory(
    length: int, decay: str, corrected: bool, steps: int, generator: torch.Generator
) -> None:
    arguments = case(length, decay, corrected, steps, generator)
    _, *written, memory, steps = arguments
    wanted = gated_delta_rule(*arguments)[1]
    torch.testing.assert_close(write(memory.clone().requires_grad_(), *written, steps), wanted, **EXACT)
    with torch.no_grad():
        torch.testing.assert_close(write(memory.clone(), *written, steps), wanted, **EXACT)


def test_decays_of_channels_take_one_step_a_token(generator: torch.Generator) -> None:
    arguments = case(6, "channels", True, 1, generator)
    with pytest.raises(ValueError, match="one step a token, not 2"):
        gated_delta_rule(arguments[0][:, :, :3], *arguments[1:3], arguments[3][:, :, :3], *arguments[4:6], 2)


def test_tokens_that_change_nothing(generator: torch.Generator) -> None:
    """Log-decay and beta 0 anywhere: the others read as if these were not there."""
    query, key, value, log_decay, beta, memory, _ = case(80, "scalar", True, 1, generator)
    absent = torch.rand(80, generator=generator) < 0.4
    blank = beta.masked_fill(absent, 0.0), log_decay.masked_fill(absent, 0.0)
    found, last = gated_delta_rule(query, key, value, blank[1], blank[0], memory)
    rest = [x[:, :, ~absent] for x in (query, key, value, log_decay, beta)]
    wanted, end = gated_delta_rule(*rest, memory)
    torch.testing.assert_close(found[:, :, ~absent], wanted, **EXACT)
    torch.testing.assert_close(last, end, **EXACT)


def test_strong_decays_in_single_precision(generator: torch.Generator) -> None:
    """After a decay that leaves nothing, what comes is as exact as if it had come first."""
    for decay in ("scalar", "channels"):
        arguments = case(90, decay, True, 1, generator)
        arguments[3][:, :, 40] = -math.inf
        rough = [x.float() if isinstance(x, Tensor) else x for x in arguments]
        exact, _ = naive.gated_delta_rule(*arguments)
        torch.testing.assert_close(gated_delta_rule(*rough)[0].double(), exact, rtol=1e-4, atol=1e-4)


@LENGTHS
def test_slots_are_the_recurrence(length: int, generator: torch.Generator) -> None:
    log_decay = F.logsigmoid(3 * random(generator, length, 6))
    arguments = [random(generator, length, K), random(generator, length, K), random(generator, length, V)]
    arguments += [-torch.expm1(log_decay), log_decay, random(generator, 6, K + V)]
    inputs = leaves(arguments)
    assert_alike(gated_slots(*arguments), naive.gated_slots(*arguments), inputs)


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
        for ours, theirs in zip(other, last, strict=True):
            torch.testing.assert_close(ours, theirs, **EXACT)
    torch.testing.assert_close(read_exponential(alone, inputs[0][:, :, -1:]), wanted[:, :, -1:], **EXACT)


@pytest.mark.parametrize("levels, cuts", [(2, (1,)), (4, (37, 64)), (9, (0, 90)), (9, ())])
def test_buckets_are_the_sum_over_keys(levels: int, cuts: tuple[int, ...], generator: torch.Generator) -> None:
    """In one pass or several, with what is no token here and there."""
    length = 3 * CHUNK + 7
    inputs = [random(generator, length, K), random(generator, length, levels), random(generator, length, K)]
    inputs += [random(generator, length, V), F.logsigmoid(random(generator, length) + 2)]
    leaves(inputs)
    wanted = naive.log_linear(*inputs)

    tokens = torch.tensor([place for place in range(2 * length) if place % 9 != 4][:length])
    real = torch.zeros(BATCH, 1, int(tokens[-1]) + 3, dtype=torch.long)
    real[:, :, tokens] = 1
    spread = [x.new_zeros(*x.shape[:2], real.size(2), *x.shape[3:]).index_copy(2, tokens, x) for x in inputs]
    state = Buckets(torch.zeros(BATCH, HEADS, levels, K, V, dtype=torch.float64), torch.zeros(BATCH, dtype=torch.long))
    parts, bounds = [], [0, *cuts, real.size(2)]
    for start, end in zip(bounds, bounds[1:], strict=False):
        part = [x[:, :, start:end] for x in (*spread, real)]
        written = write_buckets(state, *part[2:])
        reading, state = log_linear(state, *part)
        torch.testing.assert_close(written, state, **EXACT)
        parts.append(reading)
    assert_alike((torch.cat(parts, 2)[:, :, tokens],), (wanted,), inputs)
    again = read_buckets(state, *(x[:, :, -1:] for x in inputs[:2]))
    torch.testing.assert_close(again, wanted[:, :, -1:], **EXACT)
