"""Structured argmax: decoding in the forward pass, the chosen surrogate in the backward pass."""

import re

import pytest
import torch

from seqstruct.ops.trees import projective_marginals, surrogate
from seqstruct.ops.trees.projection import project_dependencies, project_simplex
from seqstruct.ops.trees.surrogate import GRADIENTS, dependency_argmax, structured_argmax
from tests.ops.trees.enumeration import all_trees, scores_of


def drawn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def one_hot(scores):
    return torch.nn.functional.one_hot(scores.argmax(-1), scores.size(-1))


def gradient_of(scores, loss_gradient, **options):
    scores = scores.clone().requires_grad_()
    output = structured_argmax(scores, one_hot, project=project_simplex, **options)
    if not output.requires_grad:
        return torch.zeros_like(scores)
    (found,) = torch.autograd.grad((output * loss_gradient).sum(), scores)
    return found


def test_forward_is_the_decoder_s():
    scores = drawn(5, 7)
    for gradient in ("pipeline", "ste", "spigot"):
        found = structured_argmax(scores, one_hot, gradient=gradient, project=project_simplex)
        assert torch.equal(found, one_hot(scores).double())


def test_each_gradient():
    scores, upstream = drawn(5, 7), drawn(5, 7, seed=2)
    assert not gradient_of(scores, upstream, gradient="pipeline").any()
    assert torch.equal(gradient_of(scores, upstream, gradient="ste"), upstream)
    assert torch.equal(gradient_of(scores, upstream, gradient="ste", step_size=0.3), 0.3 * upstream)
    z = one_hot(scores).double()
    torch.testing.assert_close(
        gradient_of(scores, upstream, gradient="spigot", step_size=0.3), z - project_simplex(z - 0.3 * upstream)
    )
    soft = structured_argmax(scores, one_hot, gradient="marginal", marginals=lambda s: s.softmax(-1))
    torch.testing.assert_close(soft, scores.softmax(-1))


def test_within_the_polytope_spigot_is_a_step_of_the_straight_through_gradient():
    """The right of Figure 2.1: a gradient that sums to 0 and only lowers the 1 keeps the point feasible."""
    scores = drawn(5, 7)
    z = one_hot(scores).double()
    share = drawn(5, 7, seed=3).softmax(-1)
    share = share * (1 - z) / (share * (1 - z)).sum(-1, keepdim=True)
    upstream = z - share
    for step_size in (0.1, 0.5):
        found = gradient_of(scores, upstream, gradient="spigot", step_size=step_size)
        expected = gradient_of(scores, upstream, gradient="ste", step_size=step_size)
        torch.testing.assert_close(found, expected, atol=1e-15, rtol=0)


def test_the_updated_point_is_feasible():
    arcs, upstream = drawn(3, 6, 6).requires_grad_(), drawn(3, 6, 6, seed=2)
    padding_mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [True] + [False] * 4])
    parts = dependency_argmax(arcs, padding_mask, gradient="spigot", step_size=0.7)
    (grad,) = torch.autograd.grad((parts * upstream).sum(), arcs)
    moved = parts.detach() - grad
    assert (moved >= -1e-15).all() and (moved <= 1 + 1e-15).all()
    real = torch.cat([torch.zeros(3, 1, dtype=torch.bool), ~padding_mask], 1)
    torch.testing.assert_close(moved.sum(1), real.double())
    torch.testing.assert_close(project_dependencies(moved, padding_mask), moved, atol=1e-14, rtol=0)


@pytest.mark.parametrize("gradient", ["ste", "spigot", "marginal"])
def test_arcs_that_no_tree_has_get_no_gradient(gradient):
    arcs, upstream = drawn(3, 6, 6).requires_grad_(), drawn(3, 6, 6, seed=2)
    padding_mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [True] + [False] * 4])
    real = torch.cat([torch.ones(3, 1, dtype=torch.bool), ~padding_mask], 1)
    there = real[:, :, None] & real[:, None] & ~torch.eye(6, dtype=torch.bool)
    there[:, :, 0] = False
    parts = dependency_argmax(arcs, padding_mask, gradient=gradient, step_size=0.7)
    (grad,) = torch.autograd.grad((parts * upstream).sum(), arcs)
    assert not grad[~there].any() and grad[there].any()
    if gradient == "ste":
        assert torch.equal(grad, 0.7 * upstream * there)


def test_the_best_tree_is_the_best_of_all():
    arcs = drawn(4, 5, 5)
    parts = dependency_argmax(arcs, gradient="ste")
    for b in range(4):
        trees = all_trees(4, True, False)
        best = trees[scores_of(trees, arcs[b]).argmax()]
        assert torch.equal(parts[b, :, 1:].argmax(0), best)
        assert parts[b].sum() == 4


def test_marginals_of_trees_have_their_own_gradient():
    arcs, upstream = drawn(2, 5, 5).requires_grad_(), drawn(2, 5, 5, seed=2)
    found = torch.autograd.grad((dependency_argmax(arcs, gradient="marginal") * upstream).sum(), arcs)
    expected = torch.autograd.grad((projective_marginals(arcs) * upstream).sum(), arcs)
    torch.testing.assert_close(found, expected)


def test_the_documented_example_of_a_new_structure_runs():
    code = re.search(r"    def decode.*?project=project\)", surrogate.__doc__, re.S).group(0)
    scores = drawn(3, 7).requires_grad_()
    scope = {"torch": torch, "structured_argmax": structured_argmax, "scores": scores, "k": 2}
    exec("\n".join(line[4:] for line in code.splitlines()), scope)
    chosen, project = scope["chosen"], scope["project"]
    assert torch.equal(chosen.sum(-1), torch.full((3,), 2.0, dtype=torch.float64))
    (grad,) = torch.autograd.grad((chosen * drawn(3, 7, seed=2)).sum(), scores)
    moved = chosen.detach() - grad
    torch.testing.assert_close(moved.sum(-1), chosen.detach().sum(-1))
    torch.testing.assert_close(project(moved), moved, atol=1e-12, rtol=0)


def test_refused():
    scores = torch.zeros(2, 3)
    with pytest.raises(ValueError, match=f"{', '.join(GRADIENTS)}, got 'gumbel'"):
        structured_argmax(scores, one_hot, gradient="gumbel")
    with pytest.raises(ValueError, match="needs a projection"):
        structured_argmax(scores, one_hot, gradient="spigot")
    with pytest.raises(ValueError, match="marginals, got None"):
        structured_argmax(scores, one_hot, gradient="marginal")
    with pytest.raises(ValueError, match="step size above 0, got 0"):
        structured_argmax(scores, one_hot, gradient="ste", step_size=0.0)
    with pytest.raises(ValueError, match=r"keeps the shape \(2, 3\), got \(2,\)"):
        structured_argmax(scores, lambda s: s.argmax(-1), gradient="ste")
