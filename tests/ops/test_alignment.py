"""Weights and windows against loops over queries and keys."""

from __future__ import annotations

import math

import pytest
import torch

from seqstruct.ops.alignment import gaussian, masked_softmax, within_window


def draw(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_masked_softmax_sees_what_is_visible(generator):
    scores = draw(generator, 2, 3, 5).requires_grad_()
    visible = torch.rand(2, 3, 5, generator=generator) > 0.4
    visible[0, 1], visible[1, 2] = False, True
    weights = masked_softmax(scores, visible)
    for row, seen, found in zip(scores.flatten(0, 1), visible.flatten(0, 1), weights.flatten(0, 1), strict=True):
        expected = torch.zeros_like(row)
        expected[seen] = row[seen].softmax(0)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
    assert gradient.isfinite().all()
    assert not gradient[~visible].any()


def test_windows_have_both_ends():
    index = torch.arange(7)[None]
    window = within_window(torch.tensor([[3.0, 0.5, 9.0]]), index, 2)
    assert window[0].tolist() == [[1 <= s <= 5 for s in range(7)], [s <= 2 for s in range(7)], [False] * 7]
    weights = gaussian(torch.tensor([[3.0]], dtype=torch.float64), index, 1.5)
    assert weights[0, 0].tolist() == pytest.approx([math.exp(-((s - 3) ** 2) / 4.5) for s in range(7)])
