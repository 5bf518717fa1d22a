"""Softmax by angle: what the contract does not say."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.attention.building import DIM, HEADS, build


def test_weights_are_a_softmax_of_cosines(generator: torch.Generator) -> None:
    attention = build("normalized_softmax")
    x = torch.randn(2, 6, DIM, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        attention.sigma.uniform_(0.5, 2.0, generator=generator)
    heads = [layer(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for layer in (attention.q_proj, attention.k_proj)]
    query, key = (F.normalize(y, dim=-1) * attention.sigma[:, None] for y in heads)
    logits = (query @ key.mT).masked_fill(~torch.ones(6, 6, dtype=torch.bool).tril(), -torch.inf)
    torch.testing.assert_close(attention(x, x, x, need_weights=True)[0].weights, logits.softmax(-1))


def test_many_random_features_come_close_to_it(generator: torch.Generator) -> None:
    exact, rough = build("normalized_softmax", sigma=0.8), build("rfa", features=160000, pool=1, floor=0.0)
    rough.load_state_dict(exact.state_dict(), strict=False)
    x = torch.randn(2, 5, DIM, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(rough(x, x, x)[0].output, exact(x, x, x)[0].output, rtol=0, atol=0.02)
