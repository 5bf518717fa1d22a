"""Random features: what their products estimate, and with what variance."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from seqstruct.ops.memory.feature_maps import (
    arccos_features,
    chunked_map,
    gaussian_features,
    orthogonal_projection,
    positive_features,
    project,
    unit_norm,
)

DRAWS, ROWS, DIM = 4000, 8, 5


def pair(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Two vectors of length about 1, each DRAWS 1 1 DIM for as many draws."""
    x, y = (0.4 * torch.randn(DIM, generator=generator, dtype=torch.float64) for _ in range(2))
    return x.expand(DRAWS, 1, 1, DIM), y.expand(DRAWS, 1, 1, DIM)


def draws(generator: torch.Generator) -> Tensor:
    return torch.randn(DRAWS, 1, ROWS, DIM, generator=generator, dtype=torch.float64)


def estimates(phi_x: Tensor, phi_y: Tensor) -> Tensor:
    return (phi_x * phi_y).sum(-1).flatten()


def test_gaussian_features_estimate_the_gaussian_kernel_with_the_variance_of_equation_a1(generator) -> None:
    x, y = pair(generator)
    w, width = draws(generator), 0.8
    found = estimates(gaussian_features(x, w / width), gaussian_features(y, w / width))
    squared = float((x[0] - y[0]).square().sum()) / width**2
    variance = (1 - math.exp(-squared)) ** 2 / (2 * ROWS)
    assert float(found.mean()) == pytest.approx(math.exp(-squared / 2), abs=4 * (variance / DRAWS) ** 0.5)
    assert float(found.var()) == pytest.approx(variance, rel=0.15)


def test_arccos_features_estimate_half_the_arc_cosine_kernel(generator) -> None:
    x, y = pair(generator)
    w = draws(generator)
    found = estimates(arccos_features(x, w), arccos_features(y, w))
    norms = float(x[0].norm() * y[0].norm())
    angle = math.acos(float((x[0] * y[0]).sum()) / norms)
    expected = norms * (math.sin(angle) + (math.pi - angle) * math.cos(angle)) / (2 * math.pi)
    assert float(found.mean()) == pytest.approx(expected, abs=4 * float(found.std()) / DRAWS**0.5)


@pytest.mark.parametrize("hyperbolic", [False, True])
def test_positive_features_estimate_the_exponential(hyperbolic: bool, generator) -> None:
    x, y = pair(generator)
    w = draws(generator)
    (phi_x, scale_x), (phi_y, scale_y) = positive_features(x, w, hyperbolic), positive_features(y, w, hyperbolic)
    assert phi_x.size(-1) == ROWS * (1 + hyperbolic)
    found = estimates(phi_x, phi_y) * (scale_x + scale_y).exp().flatten()
    assert float(found.mean()) == pytest.approx(
        math.exp(float((x[0] * y[0]).sum())), abs=4 * float(found.std()) / DRAWS**0.5
    )


def test_orthogonal_rows_are_orthogonal_in_blocks_and_as_long_as_gaussian_ones(generator) -> None:
    projection = orthogonal_projection(13, 5, generator)
    assert projection.shape == (13, 5)
    for start in (0, 5, 10):
        block = unit_norm(projection[start : start + 5])
        torch.testing.assert_close(block @ block.T, torch.eye(block.size(0)), rtol=0, atol=1e-5)
    many = orthogonal_projection(20000, 5, generator)
    assert float(many.square().sum(1).mean()) == pytest.approx(5, rel=0.03)
    torch.testing.assert_close(many.T @ many / 20000, torch.eye(5), rtol=0, atol=0.05)


def test_unit_norm_leaves_zero_alone_with_a_finite_gradient() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    result = unit_norm(x)
    torch.testing.assert_close(result, torch.tensor([[0.6, 0.8], [0.0, 0.0]]))
    assert torch.autograd.grad(result.sum(), x)[0].isfinite().all()


@pytest.mark.parametrize("length", [0, 1, 3, 9])
def test_projections_of_short_and_long_inputs_are_the_same(length: int, generator) -> None:
    x = torch.randn(2, 3, length, DIM, generator=generator, dtype=torch.float64)
    w = torch.randn(3, ROWS, DIM, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(project(x, w), torch.einsum("bhtd,hmd->bhtm", x, w))
    torch.testing.assert_close(project(x, w[0]), torch.einsum("bhtd,md->bhtm", x, w[0]))


def test_derivatives_are_those_of_the_operators(generator) -> None:
    x = torch.randn(2, 3, 7, DIM, generator=generator, dtype=torch.float64).requires_grad_()
    w = torch.randn(3, ROWS, DIM, generator=generator, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(unit_norm, x)
    assert torch.autograd.gradcheck(gaussian_features, (x, w))


def test_maps_for_chunks_alone_are_made_by_their_number() -> None:
    """As in a compiled graph without kernels, where a map is a number."""
    assert chunked_map(0, True) is None
    for kind in (1, 2, 3):
        for normed in (False, True):
            assert chunked_map(kind, normed).normed is normed
