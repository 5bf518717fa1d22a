"""The attention of recurrent translation models against its papers' equations, one query and key at a time."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from seqstruct.attention import Attention, Shape, Site, get_attention, make_config
from tests.randomised import draw, randomised

DIM, SOURCE = 4, 9


def build(name: str, generator: torch.Generator, **options: Any) -> Attention:
    attention = get_attention(name)(make_config(name, options), Shape.of(Site.CROSS, DIM)).double().eval()
    return randomised(attention, generator)


def scores(kind: str, attention: Attention, query: Tensor, key: Tensor) -> Tensor:
    """S scores of one query C and keys S C."""
    if kind == "dot":
        return torch.stack([query @ k for k in key])
    module = attention.score
    if kind == "general":
        return torch.stack([query @ (module.key_proj.weight @ k) for k in key])
    joint = torch.cat([module.query_proj.weight, module.key_proj.weight], 1)
    return torch.stack([module.weight @ torch.tanh(joint @ torch.cat([query, k])) for k in key])


@pytest.mark.parametrize("kind", ["dot", "general", "concat"])
def test_global_attention(kind: str, generator: torch.Generator) -> None:
    attention = build("luong", generator, score=kind)
    query, key = draw(generator, 1, 3, DIM), draw(generator, 1, SOURCE, DIM)
    reading = attention(query, key, key, need_weights=True)[0]
    for t in range(3):
        weights = scores(kind, attention, query[0, t], key[0]).softmax(0)
        torch.testing.assert_close(reading.weights[0, 0, t], weights, rtol=0, atol=1e-12)
        torch.testing.assert_close(reading.output[0, t], weights @ key[0], rtol=0, atol=1e-12)


def test_additive_is_concat(generator: torch.Generator) -> None:
    one, two = build("additive", generator), build("luong", generator, score="concat")
    two.load_state_dict(one.state_dict())
    query, key = draw(generator, 2, 3, DIM), draw(generator, 2, SOURCE, DIM)
    torch.testing.assert_close(one(query, key, key)[0].output, two(query, key, key)[0].output, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["dot", "general", "concat"])
@pytest.mark.parametrize("name", ["local_monotonic", "local_predictive"])
def test_local_attention(name: str, kind: str, generator: torch.Generator) -> None:
    attention = build(name, generator, score=kind, half_width=2)
    query, key = draw(generator, 1, 13, DIM), draw(generator, 1, SOURCE, DIM)
    found = attention(query, key, key, need_weights=True)[0].weights[0, 0]
    for t in range(13):
        center = float(t)
        if name == "local_predictive":
            inner = attention.position_weight @ torch.tanh(attention.position_hidden.weight @ query[0, t])
            center = SOURCE / (1 + math.exp(-inner.item()))
        inside = [s for s in range(SOURCE) if center - 2 <= s <= center + 2]
        expected = torch.zeros(SOURCE, dtype=torch.float64)
        if inside:
            expected[inside] = scores(kind, attention, query[0, t], key[0])[inside].softmax(0)
        if name == "local_predictive":
            window = [math.exp(-((s - center) ** 2) / 2) for s in range(SOURCE)]
            expected *= torch.tensor(window, dtype=torch.float64)
        torch.testing.assert_close(found[t], expected, rtol=0, atol=1e-12)
    assert (found[12] == 0).all() == (name == "local_monotonic")


@pytest.mark.parametrize("name", ["local_monotonic", "local_predictive", "location"])
def test_positions_are_of_real_tokens(name: str, generator: torch.Generator) -> None:
    """Queries read later say where they stand; padding on the left moves nothing."""
    attention = build(name, generator)
    query, key = draw(generator, 2, 5, DIM), draw(generator, 2, 30, DIM)
    whole = attention(query, key, key)[0].output
    mask = torch.zeros(2, 33, dtype=torch.bool)
    mask[:, :3] = True
    moved = torch.cat([draw(generator, 2, 3, DIM), key], 1)
    state = attention.write(attention.initial_state(2), moved, moved, mask)
    parts = [
        attention.read(state, query[:, t : t + 1], torch.full((2, 1), t)).output for t in range(5)
    ]
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_windows_of_half_types_lie_where_they_do_in_float32(half: torch.dtype, generator: torch.Generator) -> None:
    """Far into a source, where these types tell no two positions apart.  Scores are 0: a window has weights of 1/8."""
    attention = build("local_predictive", generator, score="dot", half_width=4).to(half)
    query, key = draw(generator, 2, 7, DIM).to(half), torch.zeros(2, 2999, DIM, dtype=half)
    found = attention(query, key, key, need_weights=True)[0].weights
    attention, query, key = attention.float(), query.float(), key.float()
    exact = attention(query, key, key, need_weights=True)[0].weights
    with torch.autocast("cpu", half):
        mixed = attention(query, key, key, need_weights=True)[0].weights
    assert torch.equal(found, exact) and torch.equal(mixed, exact)


def test_location_attention(generator: torch.Generator) -> None:
    attention = build("location", generator, length=6)
    query, key = draw(generator, 1, 3, DIM), draw(generator, 1, SOURCE, DIM)
    for length in (4, 6, SOURCE):
        weights = attention(query, key[:, :length], key[:, :length], need_weights=True)[0].weights[0, 0]
        rows = min(length, 6)
        expected = (query[0] @ attention.position_proj.weight[:rows].t()).softmax(1)
        torch.testing.assert_close(weights[:, :rows], expected, rtol=0, atol=1e-12)
        assert not weights[:, rows:].any()


def test_dot_needs_one_size() -> None:
    shape = Shape.of(Site.CROSS, 4, memory_dim=6)
    with pytest.raises(ValueError, match="'dot' needs keys of the queries' size, 4, not 6"):
        get_attention("luong")(make_config("luong", {"score": "dot"}), shape)
