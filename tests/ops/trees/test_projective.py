"""Projective trees: enumeration, the definition, the paper's own backward pass, extremes."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.compiled import VARIABLE
from seqstruct.ops.semiring import ExactLogSemiring, LogSemiring
from seqstruct.ops.trees import (
    projective,
    projective_best_tree,
    projective_entropy,
    projective_log_partition,
    projective_marginals,
)
from seqstruct.ops.trees.layout import aligned_arcs, masked_arcs
from seqstruct.ops.trees.naive import projective_total
from seqstruct.ops.trees.scaled import scaled_trees, scaled_trees_tangent
from tests.ops.chains.enumeration import OF_ALL
from tests.ops.signed_log import Signed, gradients, run, tree_program
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


def prepared(arcs):
    rows, arcs = aligned_arcs(arcs, None)
    return masked_arcs(arcs, rows), torch.full((len(arcs),), arcs.size(1) - 1)


def defined(arcs, lengths, single_root, semiring):
    """What a semiring says of all trees, by the definition, B."""
    return semiring.value(projective_total(semiring.lift(arcs), lengths, single_root, semiring))


def derivatives(arcs, lengths, single_root, direction, semiring):
    """Log-partition, marginals and their derivative along a direction, by the definition under autograd."""
    leaf = arcs.detach().clone().requires_grad_()
    total = defined(leaf, lengths, single_root, semiring)
    (marginals,) = torch.autograd.grad(total.sum(), leaf, create_graph=True)
    return total.detach(), marginals.detach(), *torch.autograd.grad((marginals * direction).sum(), leaf)


@pytest.mark.parametrize(("single_root", "counts"), [(False, [1, 3, 12, 55]), (True, [1, 2, 7, 30])])
def test_number_of_trees(single_root, counts):
    for n, count in enumerate(counts, 1):
        assert len(all_trees(n, True, single_root)) == count
        found = projective_log_partition(torch.zeros(1, n + 1, n + 1, dtype=torch.float64), single_root=single_root)
        assert found.exp().item() == pytest.approx(count)


@roots
@pytest.mark.parametrize("semiring, of_all", OF_ALL)
def test_one_recursion_many_semirings(generator, semiring, of_all, single_root):
    arcs, lengths = prepared(draw_arcs(generator, 1, 4))
    scores = scores_of(all_trees(4, True, single_root), arcs[0])
    torch.testing.assert_close(defined(arcs, lengths, single_root, semiring)[0], of_all(scores))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_backward_pass_of_the_paper(generator, n):
    arcs, weights = draw_arcs(generator, 1, n, spread=2.0).requires_grad_(), draw_arcs(generator, 1, n)
    program, parts = tree_program(n + 1)
    places = [(s + 1, t + 1) for s in range(n + 1) for t in range(1, n + 1) if s != t]
    leaves = {("theta", s, t): Signed(arcs[0, s - 1, t - 1].item(), 1) for s, t in places}
    values = run(program, leaves)
    upstream = {(s, t): weights[0, s - 1, t - 1].item() for s, t in places}
    expected = gradients(program, values, parts, ("a", 1, n + 1, "R", 1), upstream)
    marginals = projective_marginals(arcs)
    (grad,) = torch.autograd.grad((marginals * weights).sum(), arcs)
    for s, t in places:
        assert grad[0, s - 1, t - 1].item() == pytest.approx(expected[("theta", s, t)].number(), abs=1e-12)
    assert (grad[0, :, 0] == 0).all() and (grad[0].diagonal() == 0).all()


@roots
@pytest.mark.parametrize("n", [1, 2, 7, 13])
def test_scaled_form_equals_the_definition(generator, n, single_root):
    arcs, lengths = prepared(draw_arcs(generator, 3, n, spread=2.0))
    lengths = torch.tensor([n, max(0, n - 1), n // 2])
    real = torch.arange(n + 1) <= lengths.unsqueeze(1)
    arcs = arcs.masked_fill(~(real.unsqueeze(1) & real.unsqueeze(2)), -INF)
    direction = draw_arcs(generator, 3, n)
    scaled = scaled_trees(arcs, lengths, single_root)
    assert scaled.exact.all()
    found = scaled_trees_tangent(scaled.kept, scaled.loan, direction, single_root)
    for semiring in (LogSemiring(), ExactLogSemiring()):
        total, marginals, tangent = derivatives(arcs, lengths, single_root, direction, semiring)
        torch.testing.assert_close(scaled.log_partition, total, rtol=0, atol=1e-11)
        torch.testing.assert_close(scaled.marginals[0], marginals, rtol=0, atol=1e-12)
        torch.testing.assert_close(found, tangent, rtol=0, atol=1e-12)


@roots
@pytest.mark.parametrize("n", [1, 3])
def test_gradcheck(generator, n, single_root):
    arcs = draw_arcs(generator, 2, n).requires_grad_()
    mask, _ = padding([n, n - 1], n, left=True)
    for form in (projective_marginals, projective_entropy, projective_log_partition):
        assert torch.autograd.gradcheck(lambda x, form=form: form(x, mask, single_root=single_root), arcs)
    for form in (projective_entropy, projective_log_partition):
        assert torch.autograd.gradgradcheck(lambda x, form=form: form(x, mask, single_root=single_root), arcs)


@roots
@pytest.mark.parametrize("spread", [100.0, 1000.0, 1e4])
def test_rows_out_of_range_go_to_the_definition(generator, spread, single_root):
    arcs = draw_arcs(generator, 3, 9)
    arcs[1] *= spread
    # The best head of every word but one is a word of its own kind: no tree is made of such arcs.
    arcs[1, 2, 1], arcs[1, 1, 2] = 10 * spread, 10 * spread
    prepared_arcs, lengths = prepared(arcs)
    assert not scaled_trees(prepared_arcs, lengths, single_root).exact.all()
    weights = draw_arcs(generator, 3, 9)
    total, expected, truth = derivatives(prepared_arcs, lengths, single_root, weights, ExactLogSemiring())
    arcs.requires_grad_()
    marginals = projective_marginals(arcs, single_root=single_root)
    torch.testing.assert_close(marginals, expected, rtol=0, atol=1e-9)
    (grad,) = torch.autograd.grad((marginals * weights).sum(), arcs)
    torch.testing.assert_close(grad, truth, rtol=0, atol=1e-9)
    found = projective_log_partition(arcs, single_root=single_root)
    torch.testing.assert_close(found, total, rtol=1e-13, atol=1e-9)
    (first,) = torch.autograd.grad(found.sum(), arcs, create_graph=True)
    torch.testing.assert_close(first, expected, rtol=0, atol=1e-9)
    (second,) = torch.autograd.grad((first * weights).sum(), arcs)
    torch.testing.assert_close(second, truth, rtol=0, atol=1e-9)


@roots
@pytest.mark.parametrize("seed", [0, 1])
def test_values_that_were_lost_before_the_others_were_raised(seed, single_root, compiled_or_not):
    draw = torch.Generator().manual_seed(seed)
    arcs = 30 * torch.randn(8, 42, 42, generator=draw, dtype=torch.float64)
    prepared_arcs, lengths = prepared(arcs)
    weights = torch.zeros_like(arcs)
    total, expected, _ = derivatives(prepared_arcs, lengths, single_root, weights, ExactLogSemiring())
    found = projective_log_partition(arcs, single_root=single_root)
    torch.testing.assert_close(found, total, rtol=1e-12, atol=0)
    torch.testing.assert_close(projective_marginals(arcs, single_root=single_root), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("n", "single_root"), [(64, True), (150, True), (200, False), (300, False)])
def test_ordinary_potentials_never_leave_the_scaled_form(generator, monkeypatch, n, single_root):
    """Spreads 1 to 6, impossible arcs, padding on either side; the truth is the definition, to which all rows go."""
    arcs = draw_arcs(generator, 4, n) * torch.tensor([1.0, 3.0, 6.0, 3.0]).view(4, 1, 1)
    blocked = torch.rand(n + 1, n + 1, generator=generator) < 0.3
    arcs[3].masked_fill_(blocked.index_fill(0, torch.tensor([0]), False), -INF)
    mask = torch.zeros(4, n, dtype=torch.bool)
    mask[0, : n // 3], mask[3, n - 11 :] = True, True
    arcs.requires_grad_()
    weights = draw_arcs(generator, 4, n)
    calls, total = [], projective_total
    monkeypatch.setattr(projective, "projective_total", lambda *x: calls.append(x[0].size(1)) or total(*x))

    def results():
        marginals = projective_marginals(arcs, mask, single_root=single_root)
        (grad,) = torch.autograd.grad((marginals * weights).sum(), arcs)
        with torch.no_grad():
            return projective_log_partition(arcs, mask, single_root=single_root), marginals, grad

    found = results()
    assert not calls
    torch.testing.assert_close(found[1].sum((1, 2)), (~mask).sum(1).double(), rtol=1e-12, atol=0)
    if n > 200:
        return
    monkeypatch.setenv(VARIABLE, "0")
    monkeypatch.setattr(projective, "scaled_trees", lambda *x: (y := scaled_trees(*x))._replace(exact=~y.exact))
    truth = results()
    assert calls == [4, 4]
    torch.testing.assert_close(found[0], truth[0], rtol=1e-13, atol=0)
    torch.testing.assert_close(found[1:], truth[1:], rtol=0, atol=1e-10)


@roots
@pytest.mark.parametrize("magnitude", [30.0, 1e4, 1e8])
def test_entropy_keeps_its_digits(generator, magnitude, single_root):
    """Heads that are sure but for one, which has a rival."""
    arcs = draw_arcs(generator, 5, 4, spread=magnitude)
    for b, gap in enumerate([0.0, 1.0, 20.0, 30.0]):
        arcs[b, 3, 4] = arcs[b, :, 4].max() + magnitude
        arcs[b, 2, 4] = arcs[b, 3, 4] - gap
        arcs[b, 2, 3] = arcs[b, :, 3].max() + magnitude
    arcs.requires_grad_()
    trees = all_trees(4, True, single_root)
    found = projective_entropy(arcs, single_root=single_root)
    (grad,) = torch.autograd.grad(found.sum(), arcs)
    for b in range(5):
        scores, _ = below_the_best(trees, arcs[b].detach())
        torch.testing.assert_close(found[b], entropy_of(scores), rtol=1e-9, atol=1e-15)
        weight = -scores.softmax(0) * (scores.log_softmax(0) + entropy_of(scores))
        expected = torch.einsum("p,phm->hm", weight, indicators(trees))
        torch.testing.assert_close(grad[b], expected, rtol=0, atol=1e-14)
    assert (found >= 0).all()


@pytest.mark.parametrize("spread", [1.0, 100.0, 1e4])
def test_single_precision(generator, spread):
    arcs = draw_arcs(generator, 4, 11, spread, torch.float32)
    exact = projective_marginals(arcs.double())
    arcs.requires_grad_()
    marginals = projective_marginals(arcs)
    loss = (marginals * arcs.detach().sin()).sum() + projective_entropy(arcs).sum()
    (grad,) = torch.autograd.grad(loss, arcs)
    assert grad.dtype == torch.float32 and grad.isfinite().all()
    torch.testing.assert_close(marginals, exact.float(), rtol=0, atol=1e-5)


def test_rows_out_of_range_in_inference_mode(generator):
    arcs = draw_arcs(generator, 2, 4)
    arcs[1] *= 1e5
    arcs[1, 2, 1], arcs[1, 1, 2] = 1e6, 1e6
    mask, _ = padding([4, 3], 4, left=True)
    with torch.inference_mode():
        given = arcs.clone(), mask.clone()
        found, best = projective_marginals(*given), projective_best_tree(*given)
    assert torch.equal(found, projective_marginals(arcs, mask))
    for heads, score in (best, projective_best_tree(*given)):
        assert torch.equal(heads, projective_best_tree(arcs, mask).heads)
        assert torch.equal(score, projective_best_tree(arcs, mask).score)


def test_backward_twice(generator):
    arcs = draw_arcs(generator, 2, 5).requires_grad_()
    loss = projective_marginals(arcs)[:, 1].square().sum()
    (first,) = torch.autograd.grad(loss, arcs, retain_graph=True)
    assert torch.equal(first, torch.autograd.grad(loss, arcs)[0])


def test_shapes_are_checked(generator):
    for wrong in (torch.zeros(2, 3), torch.zeros(2, 3, 4), torch.zeros(2, 0, 0), torch.zeros(2, 3, 3).long()):
        with pytest.raises(ValueError, match="expected arcs"):
            projective_marginals(wrong)
    with pytest.raises(ValueError, match="padding_mask"):
        projective_marginals(torch.zeros(2, 3, 3), torch.zeros(2, 3, dtype=torch.bool))


def test_no_word_at_all():
    arcs = torch.zeros(2, 1, 1, requires_grad=True)
    assert torch.equal(projective_log_partition(arcs), torch.zeros(2))
    assert torch.equal(torch.autograd.grad(projective_marginals(arcs).sum(), arcs)[0], torch.zeros(2, 1, 1))
    assert projective_best_tree(arcs).heads.shape == (2, 0)
