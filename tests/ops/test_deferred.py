"""Deferred products against products with ordinary gradients."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.deferred import DeferredProducts
from tests.ops.graphs import assert_same


def draw(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def recurrence(addend: torch.Tensor, weight: torch.Tensor, start: torch.Tensor, deferred: bool) -> torch.Tensor:
    """x_(t+1) = tanh(addend_t + x_t weight), all of them, time first."""
    product = DeferredProducts(weight) if deferred else lambda x: x @ weight
    states, x = [], start
    for step in addend:
        x = (step + product(x)).tanh()
        states.append(x)
    return torch.stack(states)


@pytest.mark.parametrize("shapes", [((5, 3, 4), (4, 4), (3, 4)), ((1, 3, 1, 4), (3, 4, 4), (3, 1, 4)),
                                    ((5, 3, 2, 4), (3, 4, 4), (3, 2, 4))])  # fmt: skip
def test_values_and_gradients(shapes, generator):
    leaves = [draw(generator, *shape) for shape in shapes]
    found, expected = (recurrence(*leaves, deferred) for deferred in (True, False))
    assert_same(found, expected, leaves)


def test_products_without_a_gradient_add_nothing(generator):
    weight = draw(generator, 5, 4)
    product, inputs = DeferredProducts(weight), [draw(generator, 2, 5) for _ in range(3)]
    used = product(inputs[0]), product(inputs[1]), product(inputs[2])
    (found,) = torch.autograd.grad(used[1].sum(), weight)
    (expected,) = torch.autograd.grad((inputs[1] @ weight).sum(), weight)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


def test_a_pass_that_leaves_the_weight_out_leaves_nothing_behind(generator):
    weight, inputs = draw(generator, 5, 4), [draw(generator, 2, 5) for _ in range(2)]
    product = DeferredProducts(weight)
    one, two = (product(x) for x in inputs)
    torch.autograd.grad((one + two).sum(), inputs, retain_graph=True)
    (found,) = torch.autograd.grad(two.sum(), weight)
    (expected,) = torch.autograd.grad((inputs[1] @ weight).sum(), weight)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


def test_nothing_is_kept_without_gradients(generator):
    weight = draw(generator, 5, 4)
    with torch.no_grad():
        product = DeferredProducts(weight)
        assert product.token is None and not product(draw(generator, 2, 5)).requires_grad
