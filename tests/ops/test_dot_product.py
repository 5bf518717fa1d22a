"""Dot-product attention against sums written out."""

from __future__ import annotations

import math

import pytest
import torch

from seqstruct.ops.dot_product import sigmoid_weights, softmax_attention, softmax_weights, weighted_values


def tensors(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    shapes = ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6))
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)


def test_weights_are_the_sums_written_out(generator: torch.Generator) -> None:
    query, key, value = tensors(generator)
    visible = torch.rand(2, 1, 5, 7, generator=generator) < 0.6
    visible[1, 0, 3] = False
    soft, sigmoid = softmax_weights(query, key, visible), sigmoid_weights(query, key, visible, bias=-0.5)
    for b, h, t in ((0, 0, 0), (1, 2, 4), (1, 0, 2)):
        seen = [s for s in range(7) if visible[b, 0, t, s]]
        scores = {s: float(query[b, h, t] @ key[b, h, s]) / 2.0 for s in seen}
        total = sum(math.exp(score) for score in scores.values())
        for s in range(7):
            assert float(soft[b, h, t, s]) == pytest.approx(math.exp(scores[s]) / total if s in scores else 0.0)
            logistic = 1 / (1 + math.exp(0.5 - scores[s])) if s in scores else 0.0
            assert float(sigmoid[b, h, t, s]) == pytest.approx(logistic)
    assert not soft[1, :, 3].any() and not sigmoid[1, :, 3].any()
    fused = softmax_attention(query, key, value, visible)
    torch.testing.assert_close(fused, weighted_values(soft, value))


def test_causal_alone_or_in_the_mask(generator: torch.Generator) -> None:
    _, key, value = tensors(generator)
    visible = torch.ones(7, 7, dtype=torch.bool).tril()
    torch.testing.assert_close(
        softmax_attention(key, key, value, causal=True), softmax_attention(key, key, value, visible)
    )
    with pytest.raises(ValueError, match="causal=True stands alone"):
        softmax_attention(key, key, value, visible, causal=True)


def test_gradients_stay_finite_where_nothing_is_visible(generator: torch.Generator) -> None:
    query, key, value = (x.requires_grad_() for x in tensors(generator))
    visible = torch.zeros(2, 1, 5, 7, dtype=torch.bool)
    visible[0] = True
    for output in (
        softmax_attention(query, key, value, visible),
        weighted_values(softmax_weights(query, key, visible), value),
    ):
        gradients = torch.autograd.grad(output.sum(), (query, key, value))
        assert all(g.isfinite().all() for g in gradients)
        assert not gradients[0][1].any()
