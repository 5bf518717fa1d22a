"""Additive scores: their formula, and derivatives against autograd's."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.additive_scores import additive_scores


def draw(generator: torch.Generator, *sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("n, m", [(5, 7), (1, 3), (0, 4), (3, 0)])
def test_values_and_gradients(n: int, m: int, generator: torch.Generator) -> None:
    inputs = draw(generator, 3, n, 13), draw(generator, 3, m, 13), draw(generator, 13)
    left, right, weight = inputs
    expected = torch.tanh(left[:, :, None] + right[:, None]) @ weight
    found = additive_scores(*inputs)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    direction = torch.randn(found.shape, generator=generator, dtype=found.dtype)
    pairs = (torch.autograd.grad((x * direction).sum(), inputs) for x in (found, expected))
    for own, wanted in zip(*pairs, strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-11, atol=1e-11)


def test_gradcheck(generator: torch.Generator) -> None:
    inputs = draw(generator, 2, 3, 5), draw(generator, 2, 4, 5), draw(generator, 5)
    assert torch.autograd.gradcheck(additive_scores, inputs)


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="left B N C"):
        additive_scores(torch.zeros(2, 3, 5), torch.zeros(2, 4, 6), torch.zeros(5))
    with pytest.raises(ValueError, match="one type"):
        additive_scores(torch.zeros(2, 3, 5), torch.zeros(2, 4, 5), torch.zeros(5).double())
