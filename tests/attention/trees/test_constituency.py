"""Weights by the definition, span by span over all binary trees."""

from __future__ import annotations

import pytest
import torch

from seqstruct.attention import Shape, Site
from seqstruct.attention.trees.constituency import ConstituencyAttention
from seqstruct.ops.rows import Rows
from tests.ops.trees.enumeration import trees_over


@pytest.mark.parametrize("n", [1, 2, 5])
def test_weights_are_shares_of_the_constituents_around(generator, n):
    config = ConstituencyAttention.Config(hidden_size=3, score_size=4)
    attention = ConstituencyAttention(config, Shape.of(Site.ENCODER_SELF, 6)).double().eval()
    x = torch.randn(1, n, 6, generator=generator, dtype=torch.float64)
    reading, _ = attention(x, x, x, need_weights=True)
    theta = attention.scorer(x, Rows(None, None))[0]
    found = trees_over(0, n - 1)
    scores = torch.stack([sum(theta[span] for span in tree) for tree in found])
    weights = torch.zeros(n, n, dtype=torch.float64)
    for tree, share in zip(found, scores.softmax(0), strict=True):
        for a, b in tree:
            weights[a : b + 1, a : b + 1] += share / (b - a + 1)
    torch.testing.assert_close(reading.weights[0, 0], weights / weights.sum(1, keepdim=True))
    best = found[int(scores.argmax())]
    assert sorted(map(tuple, reading.extra["spans"][0].nonzero().tolist())) == sorted(best)
