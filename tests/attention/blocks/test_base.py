"""Attention between blocks, and synthetic weights, against masks and sums written out."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention import Attention, Site
from seqstruct.ops.memory.blocks import from_blocks, layout, sinkhorn, to_blocks
from tests.attention import building
from tests.attention.building import heads

LENGTH = 13
build = partial(building.build, site=Site.ENCODER_SELF)
inputs = partial(building.inputs, length=LENGTH)


def masked(attention: Attention, x: Tensor, visible: Tensor) -> Tensor:
    """Softmax attention under a mask T T."""
    projected = (heads(layer(x)) for layer in (attention.q_proj, attention.k_proj, attention.v_proj))
    context = F.scaled_dot_product_attention(*projected, attn_mask=visible)
    return attention.out_proj(context.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("size", [1, 4, 13, 20])
def test_blocks_are_there_and_back(size: int, generator: torch.Generator) -> None:
    pad = torch.rand(2, LENGTH, generator=generator) < 0.3
    x = torch.randn(2, 3, LENGTH, 5, generator=generator)
    place = layout(pad, size)
    back = from_blocks(to_blocks(x, place), place)
    torch.testing.assert_close(back, x.masked_fill(pad[:, None, :, None], 0.0))
    assert place.blocks.tolist() == [-(-int(row) // size) for row in (~pad).sum(1)]


@pytest.mark.parametrize("size", [1, 4, 13, 20])
def test_local_blocks_are_a_mask(size: int, generator: torch.Generator) -> None:
    attention, x = build("local_blocks", size=size), inputs(generator)
    block = torch.arange(LENGTH) // size
    torch.testing.assert_close(attention(x, x, x)[0].output, masked(attention, x, block.unsqueeze(1) == block))


@pytest.mark.parametrize("window, whole, random", [(1, 1, 1), (0, 2, 0), (2, 0, 3), (0, 9, 0)])
def test_big_bird_is_a_mask(window: int, whole: int, random: int, generator: torch.Generator) -> None:
    attention = build("bigbird", size=2, window=window, global_blocks=whole, random=random)
    x = inputs(generator)
    block = torch.arange(LENGTH) // 2
    count = int(block[-1]) + 1
    near = (torch.arange(count).unsqueeze(1) - torch.arange(count)).abs() <= window
    near[:, :whole] = near[:whole] = True
    for row, drawn in enumerate(attention.draw[:count]):
        near[row, (drawn * count).long()] = True
    visible = near[block][:, block]
    torch.testing.assert_close(attention(x, x, x)[0].output, masked(attention, x, visible))


def test_a_sorted_block_stands_beside_each_block(generator: torch.Generator) -> None:
    attention, x = build("sinkhorn", size=5, rounds=3, temperature=0.5), inputs(generator)
    means = torch.stack([part.mean(1) for part in x.split(5, 1)], 1)
    logits = heads(attention.sort_query(means)) @ heads(attention.sort_key(means)).mT / 2 / 0.5
    order = logits.exp()
    for _ in range(3):
        order = order / order.sum(-1, keepdim=True)
        order = order / order.sum(-2, keepdim=True)
    query, key, value = (heads(layer(x)) for layer in (attention.q_proj, attention.k_proj, attention.v_proj))
    pieces = [F.pad(y, (0, 0, 0, 2)).unflatten(2, (3, 5)) for y in (key, value)]
    expected = []
    for row in range(3):
        own = slice(5 * row, min(5 * row + 5, LENGTH))
        sides = [torch.cat([y[:, :, own], (order[:, :, row, :, None, None] * piece).sum(2)], 2)
                 for y, piece in zip((key, value), pieces, strict=True)]
        expected.append(F.scaled_dot_product_attention(query[:, :, own], *sides))
    expected = attention.out_proj(torch.cat(expected, 2).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x, x, x)[0].output, expected)


def test_many_rounds_give_a_doubly_stochastic_matrix(generator: torch.Generator) -> None:
    logits = torch.randn(2, 3, 5, 5, generator=generator, dtype=torch.float64)
    found = sinkhorn(logits, torch.tensor([5, 3]), 200)
    for axis in (-1, -2):
        torch.testing.assert_close(found.sum(axis)[0], torch.ones(3, 5, dtype=torch.float64))
        torch.testing.assert_close(found.sum(axis)[1, :, :3], torch.ones(3, 3, dtype=torch.float64))
    assert not found[1, :, 3:].any() and not found[1, :, :, 3:].any()


@pytest.mark.parametrize("kind", ["dense", "random"])
def test_synthetic_weights_look_at_no_key(kind: str, generator: torch.Generator) -> None:
    attention, x = build("synthesizer", kind=kind, length=20), inputs(generator)
    if kind == "dense":
        hidden = heads(attention.hidden(x).relu())
        logits = (hidden @ attention.position_weight + attention.position_bias)[..., :LENGTH]
    else:
        logits = attention.logits[:, :LENGTH, :LENGTH].expand(2, -1, -1, -1)
    reading, _ = attention(x, x, x, need_weights=True)
    torch.testing.assert_close(reading.weights, logits.softmax(-1))
    context = logits.softmax(-1) @ heads(attention.v_proj(x))
    torch.testing.assert_close(reading.output, attention.out_proj(context.transpose(1, 2).flatten(2)))


def test_synthetic_weights_end_at_the_longest_length(generator: torch.Generator) -> None:
    x = inputs(generator)
    with pytest.raises(ValueError, match="synthesizer: a sequence of 13 tokens"):
        build("synthesizer", length=12)(x, x, x)


