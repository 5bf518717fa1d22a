"""Projections: against reference numbers, a quadratic-programming solver, and what a projection must be."""

import numpy as np
import pytest
import torch
from scipy.optimize import lsq_linear

from seqstruct.ops.trees.projection import project_dependencies, project_labeled_arcs, project_simplex


def drawn(*shape, seed=1, scale=1.0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale


def solve(point, balance, total):
    """The closest p in [0, 1] with balance . p = total: bounded least squares by an active set.

    The equality is one more row, whose weight makes its violation about 1e-10.
    """
    weight = 1e5
    rows = np.vstack([np.eye(len(point)), weight * np.asarray(balance)])
    found = lsq_linear(rows, np.append(point, weight * total), bounds=(0, 1), method="bvls", tol=1e-15, max_iter=500)
    return torch.from_numpy(found.x)


def test_simplex_reference_numbers(golden):
    data = np.load(golden("inference", "simplex_projection.npz"))
    for z, dim, radius, p, w, grad, smooth in zip(
        *(data[name] for name in ("z", "dim", "radius", "p", "w", "grad", "differentiable")), strict=True
    ):
        values = torch.from_numpy(z[:dim]).requires_grad_()
        projected = project_simplex(values, float(radius))
        torch.testing.assert_close(projected.detach(), torch.from_numpy(p[:dim]), atol=1e-9, rtol=1e-9)
        if smooth:
            (found,) = torch.autograd.grad(projected @ torch.from_numpy(w[:dim]), values)
            torch.testing.assert_close(found, torch.from_numpy(grad[:dim]), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_simplex_against_a_solver(n):
    for row in drawn(5, n, seed=n, scale=2.0):
        expected = solve(row.numpy(), np.ones(n), 1.0)
        torch.testing.assert_close(project_simplex(row), expected, atol=1e-6, rtol=0)


def test_a_point_of_the_simplex_stays():
    point = drawn(13, 7).softmax(-1)
    torch.testing.assert_close(project_simplex(point), point, atol=1e-15, rtol=0)
    torch.testing.assert_close(project_simplex(3 * point, 3.0), 3 * point, atol=1e-15, rtol=0)
    corner = torch.eye(5)
    assert torch.equal(project_simplex(corner), corner)


def test_what_is_left_out_is_zero():
    values = torch.tensor([[0.2, -torch.inf, 0.1], [-torch.inf, -torch.inf, -torch.inf]], requires_grad=True)
    projected = project_simplex(values)
    torch.testing.assert_close(projected, torch.tensor([[0.55, 0.0, 0.45], [0.0, 0.0, 0.0]]))
    (grad,) = torch.autograd.grad(projected[:, 0].sum(), values)
    torch.testing.assert_close(grad, torch.tensor([[0.5, 0.0, -0.5], [0.0, 0.0, 0.0]]))
    assert project_simplex(torch.zeros(3, 0)).shape == (3, 0)


def test_simplex_gradient():
    torch.autograd.gradcheck(project_simplex, drawn(3, 5, scale=0.6).requires_grad_())


@pytest.mark.parametrize("n", [0, 1, 5])
def test_dependencies_against_a_solver(n):
    arcs = drawn(3, n + 1, n + 1, seed=n)
    padding_mask = torch.zeros(3, n, dtype=torch.bool)
    padding_mask[1, n // 2 :] = True
    padding_mask[2, : n // 2] = True
    projected = project_dependencies(arcs, padding_mask)
    for b in range(3):
        real = [0, *(1 + m for m in range(n) if not padding_mask[b, m])]
        expected = torch.zeros(n + 1, n + 1, dtype=torch.float64)
        for m in real[1:]:
            heads = [h for h in real if h != m]
            expected[heads, m] = solve(arcs[b, heads, m].numpy(), np.ones(len(heads)), 1.0)
        torch.testing.assert_close(projected[b], expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(project_dependencies(projected, padding_mask), projected, atol=1e-14, rtol=0)


@pytest.mark.parametrize("labels", [1, 2, 7])
def test_labeled_arcs_against_a_solver(labels):
    arcs, scores = drawn(40, seed=2, scale=1.5), drawn(40, labels, seed=3, scale=1.5)
    arc, label = project_labeled_arcs(arcs, scores)
    balance = np.array([-1.0] + [1.0] * labels)
    for row in range(40):
        expected = solve(np.concatenate([[arcs[row]], scores[row]]), balance, 0.0)
        torch.testing.assert_close(torch.cat([arc[row : row + 1], label[row]]), expected, atol=1e-6, rtol=0)
    assert ((arc == 0).any() and (arc > 1 - 1e-12).any()) and ((arc > 0.01) & (arc < 0.99)).any()
    again = project_labeled_arcs(arc, label)
    torch.testing.assert_close(again[0], arc, atol=1e-14, rtol=0)
    torch.testing.assert_close(again[1], label, atol=1e-14, rtol=0)


def test_refused():
    with pytest.raises(ValueError, match=r"values\[1, 2\]: expected a number, got nan"):
        project_simplex(torch.tensor([[0.0, 1, 2], [0, 1, torch.nan]]))
    for radius in (0.0, torch.inf):
        with pytest.raises(ValueError, match=f"expected a finite radius above 0, got {radius}"):
            project_simplex(torch.zeros(3), radius)
    with pytest.raises(ValueError, match="B n\\+1 n\\+1"):
        project_dependencies(torch.zeros(2, 3, 4))
    with pytest.raises(ValueError, match="L >= 1"):
        project_labeled_arcs(torch.zeros(2, 3), torch.zeros(2, 3, 0))
    with pytest.raises(ValueError, match=r"labels\[0, 1\]"):
        project_labeled_arcs(torch.zeros(1), torch.tensor([[0.0, torch.inf]]))
