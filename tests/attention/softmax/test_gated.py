"""Softmax over keys and values that decay: the loop of equation A.2, and that no stream carries it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.attention.building import DIM, HEADS, build, inputs
from tests.models.building import dictionary_of, small_language_model

LENGTH = 7


def equation_a2(attention, x: Tensor) -> Tensor:
    """One sequence T C, step by step and head by head, as it is written."""
    query, key, value = (
        layer(x).unflatten(-1, (HEADS, -1)) for layer in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    gate = attention.gate_layer(x).sigmoid()  # T H
    steps = []
    for t in range(len(x)):
        heads = []
        for h in range(HEADS):
            keys, values = [], []
            for i in range(t + 1):
                decay = (1 - gate[i, h]) * gate[i + 1 : t + 1, h].prod()
                keys.append(key[i, h] * decay)
                values.append(value[i, h] * decay)
            weights = (torch.stack(keys) @ query[t, h] / (DIM // HEADS) ** 0.5).softmax(0)
            heads.append(weights @ torch.stack(values))
        steps.append(attention.out_proj(torch.cat(heads)))
    return torch.stack(steps)


@pytest.mark.parametrize("scale", [1.0, 20.0])  # at 20 gates are close to 0 and 1
def test_it_is_equation_a2(scale: float, generator: torch.Generator) -> None:
    attention = build("gated_softmax")
    with torch.no_grad():
        attention.gate_layer.weight.uniform_(-scale, scale, generator=generator)
        x = inputs(generator, LENGTH)
        found = attention(x, x, x)[0].output
        wanted = torch.stack([equation_a2(attention, row) for row in x])
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_keys_far_back_weigh_alike(generator: torch.Generator) -> None:
    """Gates of 1/2 scale the newest key by 1/2, the one before by 1/4, and so on; what is far back has a logit of 0."""
    attention = build("gated_softmax")
    x = inputs(generator, 60)
    with torch.no_grad():
        attention.gate_layer.weight.zero_()
        weights = attention(x, x, x, need_weights=True)[0].weights
    torch.testing.assert_close(weights[:, :, -1, :20], weights[:, :, -1, :1].expand(-1, -1, 20), rtol=1e-9, atol=0)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, HEADS, 60, dtype=torch.float64))


def test_a_stream_cannot_carry_it() -> None:
    model = small_language_model(dictionary_of("abc"), decoder_self_attention="gated_softmax")
    with pytest.raises(ValueError, match="gated_softmax attention cannot be carried .* keep every key of the stream"):
        model.decoder.initial_state(1)
