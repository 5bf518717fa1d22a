"""Softmax, dot-product attention and scores against sums written out."""

from __future__ import annotations

import math

import pytest
import torch

from seqstruct.ops.softmax import (
    additive_scores,
    gaussian,
    masked_softmax,
    sigmoid_weights,
    softmax_attention,
    softmax_weights,
    weighted_values,
    within_window,
)
from tests.randomised import draw


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_masked_softmax_sees_what_is_no_padding(scale, generator):
    scores = (scale * draw(generator, 2, 3, 5)).requires_grad_()
    padding = torch.rand(2, 3, 5, generator=generator) < 0.4
    padding[0, 1], padding[1, 2] = True, False
    weights = masked_softmax(scores, padding)
    for row, hidden, found in zip(scores.flatten(0, 1), padding.flatten(0, 1), weights.flatten(0, 1), strict=True):
        expected = torch.zeros_like(row)
        expected[~hidden] = row[~hidden].softmax(0)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    assert not weights[padding].any()
    (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
    assert gradient.isfinite().all()
    assert not gradient[padding].any()
    assert torch.equal(masked_softmax(scores, None), masked_softmax(scores, torch.zeros(5, dtype=torch.bool)))


def test_windows_have_both_ends():
    index = torch.arange(7)[None]
    window = within_window(torch.tensor([[3.0, 0.5, 9.0]]), index, 2)
    assert window[0].tolist() == [[1 <= s <= 5 for s in range(7)], [s <= 2 for s in range(7)], [False] * 7]
    weights = gaussian(torch.tensor([[3.0]], dtype=torch.float64), index, 1.5)
    assert weights[0, 0].tolist() == pytest.approx([math.exp(-((s - 3) ** 2) / 4.5) for s in range(7)])


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


@pytest.mark.parametrize("n, m", [(5, 7), (1, 3), (0, 4), (3, 0)])
def test_additive_scores_and_their_gradients(n: int, m: int, generator: torch.Generator) -> None:
    inputs = [draw(generator, *shape).requires_grad_() for shape in ((3, n, 13), (3, m, 13), (13,))]
    left, right, weight = inputs
    expected = torch.tanh(left[:, :, None] + right[:, None]) @ weight
    found = additive_scores(*inputs)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    direction = torch.randn(found.shape, generator=generator, dtype=found.dtype)
    pairs = (torch.autograd.grad((x * direction).sum(), inputs) for x in (found, expected))
    torch.testing.assert_close(*pairs, rtol=1e-11, atol=1e-11)


def test_additive_scores_are_in_their_own_type_under_autocast(generator: torch.Generator) -> None:
    inputs = [draw(generator, *shape).float().requires_grad_() for shape in ((2, 3, 5), (2, 4, 5), (5,))]
    expected = additive_scores(*inputs)
    with torch.autocast("cpu", torch.bfloat16):
        found = additive_scores(*inputs)
    assert torch.equal(found, expected)
    both = (torch.autograd.grad(x.square().sum(), inputs) for x in (found, expected))
    torch.testing.assert_close(*both)


def test_gradcheck_of_additive_scores(generator: torch.Generator) -> None:
    inputs = [draw(generator, *shape).requires_grad_() for shape in ((2, 3, 5), (2, 4, 5), (5,))]
    assert torch.autograd.gradcheck(additive_scores, inputs)


def test_additive_scores_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="left B N C"):
        additive_scores(torch.zeros(2, 3, 5), torch.zeros(2, 4, 6), torch.zeros(5))
    with pytest.raises(ValueError, match="one type"):
        additive_scores(torch.zeros(2, 3, 5), torch.zeros(2, 4, 5), torch.zeros(5).double())
