"""Log-linear attention by buckets against its sum over keys."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from seqstruct.ops.delta import Buckets, log_linear, log_linear_after, naive, read_buckets, write_buckets
from seqstruct.ops.delta.chunks import CHUNK
from tests.ops.delta.forms import BATCH, EXACT, HEADS, LONG, K, V, assert_alike, leaves, random


@pytest.mark.parametrize("levels, cuts", [(2, (1,)), (4, (37, 64)), (9, (0, 90)), (9, ())])
def test_buckets_are_the_sum_over_keys(levels: int, cuts: tuple[int, ...], generator: torch.Generator) -> None:
    """In one pass or several, with what is no token here and there."""
    length = LONG
    inputs = [random(generator, length, K), random(generator, length, levels), random(generator, length, K)]
    inputs += [random(generator, length, V), F.logsigmoid(random(generator, length) + 2)]
    leaves(inputs)
    wanted = naive.log_linear(*inputs)

    tokens = torch.tensor([place for place in range(2 * length) if place % 9 != 4][:length])
    real = torch.zeros(BATCH, 1, int(tokens[-1]) + 3, dtype=torch.long)
    real[:, :, tokens] = 1
    spread = [x.new_zeros(*x.shape[:2], real.size(2), *x.shape[3:]).index_copy(2, tokens, x) for x in inputs]
    state = nothing(levels)
    parts, bounds = [], [0, *cuts, real.size(2)]
    for start, end in zip(bounds, bounds[1:], strict=False):
        part = [x[:, :, start:end] for x in (*spread, real)]
        written = write_buckets(state, *part[2:])
        reading, state = log_linear_after(state, *part)
        torch.testing.assert_close(written, state, **EXACT)
        parts.append(reading)
    whole = log_linear(*spread, real)
    assert not whole[(real == 0).expand(whole.shape[:3])].any()
    assert_alike((torch.cat(parts, 2)[:, :, tokens], whole[:, :, tokens]), (wanted, wanted), inputs)
    again = read_buckets(state, *(x[:, :, -1:] for x in inputs[:2]))
    torch.testing.assert_close(again, wanted[:, :, -1:], **EXACT)


@pytest.mark.parametrize("length", [0, 1, 2, 7, CHUNK, 2 * CHUNK + 1, 5 * CHUNK + 3, 7 * CHUNK - 1, 8 * CHUNK])
@pytest.mark.parametrize("levels", [2, 7, 12])
def test_halves_of_blocks_are_the_buckets(length: int, levels: int, generator: torch.Generator) -> None:
    """A whole sequence, whose blocks need not be full, against the same going on from nothing."""
    inputs = [random(generator, length, K), random(generator, length, levels), random(generator, length, K)]
    inputs += [random(generator, length, V), F.logsigmoid(random(generator, length) + 2)]
    leaves(inputs)
    found, (wanted, _) = log_linear(*inputs), log_linear_after(nothing(levels), *inputs)
    assert found.shape == (BATCH, HEADS, length, V)
    if length:
        assert_alike((found,), (wanted,), inputs)


def nothing(levels: int) -> Buckets:
    memory = torch.zeros(BATCH, HEADS, levels, K, V, dtype=torch.float64)
    return Buckets(memory, torch.zeros(BATCH, dtype=torch.long))
