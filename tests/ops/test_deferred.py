"""Deferred products against products with ordinary gradients."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.deferred import DeferredProducts


def draw(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def recurrence(addend: torch.Tensor, weight: torch.Tensor, start: torch.Tensor, deferred: bool) -> torch.Tensor:
    """x_(t+1) = tanh(addend_t + x_t weight), all of them."""
    products = DeferredProducts(addend, weight) if deferred else None
    states, x = [], start
    for t in range(addend.size(1)):
        x = (products(t, x) if deferred else addend[:, t] + x @ weight).tanh()
        states.append(x)
    return torch.stack(states, 1)


@pytest.mark.parametrize("length", [1, 5])
def test_values_and_gradients(length, generator):
    leaves = [draw(generator, 3, length, 4), draw(generator, 4, 4), draw(generator, 3, 4)]
    found, expected = (recurrence(*leaves, deferred) for deferred in (True, False))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    weights = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, leaves, weights)
    for _ in range(2):  # the graph may be used again
        again = torch.autograd.grad(found, leaves, weights, retain_graph=True)
        for one, two in zip(again, wanted, strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=1e-13)


def test_order_and_completeness_are_checked(generator):
    products = DeferredProducts(draw(generator, 2, 3, 4), draw(generator, 5, 4))
    result = products(0, draw(generator, 2, 5))
    with pytest.raises(ValueError, match="expected step 1, got step 2"):
        products(2, draw(generator, 2, 5))
    with pytest.raises(ValueError, match="3 products were announced and 1 made"):
        result.sum().backward()


def test_nothing_is_kept_without_gradients(generator):
    with torch.no_grad():
        products = DeferredProducts(draw(generator, 2, 3, 4), draw(generator, 5, 4))
        products(0, draw(generator, 2, 5))
    assert products.inputs is None
