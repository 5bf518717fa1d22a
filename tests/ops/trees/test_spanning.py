"""Non-projective trees: enumeration, elimination against the determinant, best trees, extremes."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.semiring import EntropySemiring, ExactLogSemiring
from seqstruct.ops.trees import projective_marginals
from seqstruct.ops.trees.matrix_tree import GREATEST_INVERSE
from seqstruct.ops.trees.spanning import (
    eliminate,
    spanning_best_tree,
    spanning_entropy,
    spanning_log_partition,
    spanning_marginals,
)
from tests.ops.trees.enumeration import (
    all_trees,
    below_the_best,
    draw_arcs,
    entropy_of,
    indicators,
    padding,
    scores_of,
)

INF = float("inf")
roots = pytest.mark.parametrize("single_root", [False, True])


def banned(arcs):
    arcs = arcs.clone()
    arcs[:, :, 0] = -INF
    arcs.diagonal(dim1=1, dim2=2).fill_(-INF)
    return arcs


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9])
def test_number_of_trees(n):
    arcs = torch.zeros(1, n + 1, n + 1, dtype=torch.float64)
    assert spanning_log_partition(arcs).exp().item() == pytest.approx((n + 1) ** (n - 1))
    assert spanning_log_partition(arcs, single_root=True).exp().item() == pytest.approx(n ** (n - 1))


@roots
@pytest.mark.parametrize("n", [1, 2, 5, 11])
def test_elimination_equals_determinant(generator, n, single_root):
    arcs = banned(draw_arcs(generator, 3, n)).requires_grad_()
    lengths = torch.full((3,), n)
    weights = draw_arcs(generator, 3, n)
    total = eliminate(arcs, lengths, single_root, ExactLogSemiring()).sum(0)
    (expected,) = torch.autograd.grad(total.sum(), arcs, create_graph=True)
    (truth,) = torch.autograd.grad((expected * weights).sum(), arcs)
    marginals = spanning_marginals(arcs, single_root=single_root)
    (grad,) = torch.autograd.grad((marginals * weights).sum(), arcs)
    torch.testing.assert_close(spanning_log_partition(arcs, single_root=single_root), total, rtol=0, atol=1e-11)
    torch.testing.assert_close(marginals, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(grad, truth, rtol=0, atol=1e-12)


@roots
@pytest.mark.parametrize("magnitude", [30.0, 1e4, 1e8])
def test_entropy_keeps_its_digits(generator, magnitude, single_root):
    """Heads that are sure but for one, which has a rival; and the forms by elimination alone."""
    arcs = draw_arcs(generator, 5, 4, spread=magnitude)
    for b, gap in enumerate([0.0, 1.0, 20.0, 30.0]):
        arcs[b, 1, 4] = arcs[b, :, 4].max() + magnitude
        arcs[b, 2, 4] = arcs[b, 1, 4] - gap
    arcs.requires_grad_()
    trees = all_trees(4, False, single_root)
    found = spanning_entropy(arcs, single_root=single_root)
    by_elimination = eliminate(banned(arcs), torch.full((5,), 4), single_root, EntropySemiring())[2]
    (grad,) = torch.autograd.grad(found.sum(), arcs)
    for b in range(5):
        scores, _ = below_the_best(trees, arcs[b].detach())
        torch.testing.assert_close(found[b], entropy_of(scores), rtol=1e-9, atol=1e-14 * max(1, magnitude / 1e4))
        torch.testing.assert_close(by_elimination[b], entropy_of(scores), rtol=1e-9, atol=1e-15 * magnitude)
        p = scores.softmax(0)
        weight = -p * (scores.log_softmax(0) + entropy_of(scores))
        expected = torch.einsum("p,phm->hm", weight, indicators(trees))
        torch.testing.assert_close(grad[b], expected, rtol=0, atol=1e-14 * max(magnitude, 100))
    assert (found >= 0).all()


@roots
def test_small_gap_to_a_singular_laplacian(generator, single_root):
    """Two words that prefer each other by 30: a determinant would lose digits that elimination keeps."""
    arcs = draw_arcs(generator, 2, 4)
    arcs[0, 1, 2] += 30.0
    arcs[0, 2, 1] += 30.0
    arcs.requires_grad_()
    trees = all_trees(4, False, single_root)
    scores = scores_of(trees, arcs[0].detach())
    marginals = spanning_marginals(arcs, single_root=single_root)
    expected = torch.einsum("p,phm->hm", scores.softmax(0), indicators(trees))
    torch.testing.assert_close(marginals[0], expected, rtol=0, atol=1e-13)
    laplacian = torch.diag(arcs[0].exp()[:, 1:].sum(0)) - arcs[0].exp()[1:, 1:]
    assert laplacian.inverse().abs().max() * laplacian.abs().max() > GREATEST_INVERSE
    weights = draw_arcs(generator, 2, 4)
    (grad,) = torch.autograd.grad((marginals * weights).sum(), arcs)
    values = (indicators(trees) * weights[0]).sum((1, 2))
    p = scores.softmax(0)
    covariance = torch.einsum("p,p,phm->hm", p, values - p @ values, indicators(trees))
    torch.testing.assert_close(grad[0], covariance, rtol=0, atol=1e-12)


@roots
@pytest.mark.parametrize("spread", [1.0, 100.0])
@pytest.mark.parametrize("n", [1, 3])
def test_gradcheck(generator, n, spread, single_root):
    arcs = draw_arcs(generator, 2, n)
    if spread > 1:  # by elimination, in a smooth place
        arcs[:, 0] -= 20.0
    arcs.requires_grad_()
    mask, _ = padding([n, n - 1], n, left=True)
    for form in (spanning_marginals, spanning_entropy, spanning_log_partition):
        assert torch.autograd.gradcheck(lambda x, form=form: form(x, mask, single_root=single_root), arcs)
    assert torch.autograd.gradgradcheck(lambda x: spanning_log_partition(x, mask, single_root=single_root), arcs)


@roots
@pytest.mark.parametrize("spread", [100.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_potentials(generator, spread, single_root, dtype):
    arcs = draw_arcs(generator, 3, 4, spread, dtype).requires_grad_()
    trees = all_trees(4, False, single_root)
    marginals = spanning_marginals(arcs, single_root=single_root)
    (grad,) = torch.autograd.grad((marginals * arcs.detach().sin()).sum(), arcs)
    assert grad.isfinite().all()
    for b in range(3):
        p = scores_of(trees, arcs[b].detach().double()).softmax(0)
        expected = torch.einsum("p,phm->hm", p, indicators(trees)).to(dtype)
        torch.testing.assert_close(marginals[b], expected, rtol=0, atol=1e-9 if dtype == torch.float64 else 1e-5)


@roots
def test_best_tree_of_many_cycles(generator, single_root):
    """Few distinct scores, so that cycles nest; against enumeration."""
    trees = all_trees(5, False, single_root)
    arcs = torch.randint(-3, 4, (12, 6, 6), generator=generator).double()
    arcs[:, 0] -= 6.0
    best = spanning_best_tree(arcs, single_root=single_root)
    for b in range(12):
        scores = scores_of(trees, arcs[b])
        assert best.score[b] == scores.max()
        assert scores_of(best.heads[b : b + 1], arcs[b])[0] == scores.max()
        assert (trees == best.heads[b]).all(1).any()


def test_one_root_arc_however_large_the_scores(generator):
    arcs = 1e12 * draw_arcs(generator, 3, 4)
    arcs[:, 0] += 1e15
    trees = all_trees(4, False, True)
    best = spanning_best_tree(arcs, single_root=True)
    for b in range(3):
        assert torch.equal(best.heads[b], trees[scores_of(trees, arcs[b]).argmax()])


def test_no_single_root_tree():
    arcs = torch.full((1, 3, 3), -INF, dtype=torch.float64)
    arcs[0, 0, 1:] = 0.0
    assert spanning_best_tree(arcs).heads.tolist() == [[0, 0]]
    assert spanning_best_tree(arcs, single_root=True).heads.tolist() == [[-1, -1]]
    assert spanning_log_partition(arcs, single_root=True).item() == -INF
    assert spanning_log_partition(arcs).item() == pytest.approx(0.0)


def test_no_graph_without_gradient(generator):
    arcs = draw_arcs(generator, 2, 4)
    arcs[0] *= 100.0
    assert not spanning_marginals(arcs).requires_grad and not spanning_log_partition(arcs).requires_grad
    with torch.no_grad():
        arcs.requires_grad_()
        assert not spanning_marginals(arcs).requires_grad and not spanning_log_partition(arcs).requires_grad
    assert not spanning_best_tree(arcs).score.requires_grad


@pytest.mark.parametrize("form", [spanning_marginals, projective_marginals])
def test_training_after_inference(generator, form):
    """What is cached in inference mode must serve a backward pass; a size that no other test uses."""
    arcs = draw_arcs(generator, 2, 17)
    with torch.inference_mode():
        form(arcs)
    (grad,) = torch.autograd.grad(form(arcs.requires_grad_()).square().sum(), arcs)
    assert grad.abs().max() > 0


def test_no_word_at_all():
    arcs = torch.zeros(2, 1, 1)
    assert torch.equal(spanning_log_partition(arcs), torch.zeros(2))
    assert torch.equal(spanning_marginals(arcs), torch.zeros(2, 1, 1))
    assert spanning_best_tree(arcs).heads.shape == (2, 0)
    with pytest.raises(ValueError, match="expected arcs"):
        spanning_marginals(torch.zeros(2, 3, 4))
