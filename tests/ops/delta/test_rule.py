"""The chunked forms against the recurrences, at lengths around and beyond several chunks."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.delta import gated_delta_rule, naive, write
from tests.ops.delta.forms import EXACT, LENGTHS, LONG, K, V, assert_alike, leaves, random


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
@pytest.mark.parametrize("length", [1, LONG])
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
