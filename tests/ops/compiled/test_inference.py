"""Compiled marginals of chains and trees against those in PyTorch."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.chains import chain_entropy, chain_log_partition, chain_marginals
from seqstruct.ops.trees import (
    constituency_log_partition,
    constituency_marginals,
    projective_log_partition,
    projective_marginals,
    spanning_log_partition,
    spanning_marginals,
)
from tests.ops.chains.enumeration import masks

FORMS = {
    "projective": (projective_marginals, projective_log_partition),
    "all": (spanning_marginals, spanning_log_partition),
}
trees = pytest.mark.parametrize("form", FORMS)
roots = pytest.mark.parametrize("single_root", [False, True])


def of_chains(unary, edge, mask):
    """Marginals, log-partition, entropy, and gradients of weightings of these."""
    found = [*chain_marginals(unary, edge, mask), chain_log_partition(unary, edge, mask)]
    found.append(chain_entropy(unary, edge, mask))
    return with_gradients(found, (unary, edge))


def of_trees(form, arcs, mask, single_root):
    """Marginals, log-partition, and gradients of weightings of both."""
    return with_gradients([x(arcs, mask, single_root=single_root) for x in FORMS[form]], (arcs,))


def of_spans(spans, lengths):
    """The same, and the gradient of the gradient of the log-partition."""
    total = constituency_log_partition(spans, lengths)
    (first,) = torch.autograd.grad(total.sum(), spans, create_graph=True)
    return with_gradients([constituency_marginals(spans, lengths), total, first], (spans,))


def with_gradients(found, leaves):
    loss = sum((x * torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x)).sum() for x in found)
    return [*(x.detach() for x in found), *torch.autograd.grad(loss, leaves)]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(("N", "C"), [(5, 1), (1, 3), (2, 2), (13, 2), (13, 3), (7, 5), (5, 13), (40, 19)])
def test_chains_are_those_of_pytorch(N, C, left, both, generator):
    unary, edge = (3 * torch.randn(x, generator=generator, dtype=torch.float64) for x in ((4, N, C), (4, N - 1, C, C)))
    unary[0, 0, 0] = -torch.inf if C > 1 else 0.0
    mask = masks([N, N // 2, min(N, 1), 0], N, left)
    leaves = unary.requires_grad_(), edge.requires_grad_()
    for mask_or_none in (mask, None):
        found = both(lambda m=mask_or_none: of_chains(*leaves, m))
        torch.testing.assert_close(*found, rtol=1e-12, atol=1e-11)


@trees
@roots
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 13, 34])
def test_trees_are_those_of_pytorch(form, n, left, single_root, both, generator):
    arcs = 2 * torch.randn(4, n + 1, n + 1, generator=generator, dtype=torch.float64)
    arcs[0, 1, n], arcs[1, 0, n] = -torch.inf, 40.0
    mask, arcs = masks([n, n // 2, 1, 0], n, left), arcs.requires_grad_()
    for mask_or_none in (mask, None):
        found = both(lambda m=mask_or_none: of_trees(form, arcs, m, single_root))
        torch.testing.assert_close(*found, rtol=1e-11, atol=1e-10)


@roots
@pytest.mark.parametrize(("n", "spread"), [(70, 1.0), (70, 6.0), (140, 3.0)])
def test_charts_that_would_leave_the_range_of_numbers(n, spread, single_root, compiled, both, generator):
    """Arcs are multiplied by a factor when spans have become 32, 64 and 128 words long."""
    arcs = (spread * torch.randn(2, n + 1, n + 1, generator=generator, dtype=torch.float64)).requires_grad_()
    compiled(True)
    *_, exact, _ = torch.ops.seqstruct.projective_marginals(arcs.detach(), None, single_root, False)
    assert exact.all()
    found = both(lambda: of_trees("projective", arcs, None, single_root))
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("labels", [1, 2, 13])
@pytest.mark.parametrize("n", [1, 2, 5, 13, 34])
def test_brackets_are_those_of_pytorch(n, labels, both, generator):
    """What stands below the diagonal and behind the words of a row does not matter."""
    spans = 2 * torch.randn(5, n, n, labels, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([n, n // 2, 1, 0, n - 1])
    spans += torch.tensor([0.0, 40.0, -700.0, 0.0, 5e4])[:, None, None, None]
    position = torch.arange(n)
    nowhere = (position[:, None] > position) | (position >= lengths[:, None, None])
    spans = spans.masked_fill(nowhere.unsqueeze(3), torch.nan)
    spans[0, 0, n // 2, labels - 1] = -torch.inf if n > 2 or labels > 1 else 0.0
    leaf = spans.requires_grad_()
    found = both(lambda: of_spans(leaf, lengths))
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-10)
    assert all(x.isfinite().all() for x in found[0])


@pytest.mark.parametrize(("n", "spread"), [(140, 1.0), (70, 12.0), (40, 60.0)])
def test_brackets_that_would_leave_the_range_of_numbers(n, spread, compiled, both, generator):
    """Spans are multiplied by a factor when they have become 4, 16 and 64 words long."""
    leaf = (spread * torch.randn(1, n, n, 1, generator=generator, dtype=torch.float64)).requires_grad_()
    compiled(True)
    lengths = torch.tensor([n])
    assert torch.ops.seqstruct.constituency_marginals(leaf.detach(), lengths, False)[2].all()
    found = both(lambda: of_spans(leaf, lengths))
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-10)


@trees
@roots
def test_roots_of_great_potentials(form, single_root, both, generator):
    """They are brought to 0 where no digit is lost by it."""
    arcs = torch.randn(3, 6, 6, generator=generator, dtype=torch.float64)
    arcs[:, 0] = (arcs[:, 0] * 2**10).round() / 2**10 + torch.tensor([0.0, 2.0**30, -(2.0**30)]).unsqueeze(1)
    arcs[2, 0, 1] += 1e-7
    arcs.requires_grad_()
    found = both(lambda: of_trees(form, arcs, None, single_root))
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-9)


def test_rows_out_of_range_are_0_and_said_to_be(compiled):
    """Not impossible ones alone: of the first chain underflow takes all, of the first trees every word's heads."""
    compiled(True)
    unary, edge = torch.zeros(2, 3, 2, dtype=torch.float64), torch.zeros(2, 2, 2, 2, dtype=torch.float64)
    edge[0, 0, :, 1], edge[0, 1, 0] = -920.0, -1150.0
    leaves = unary.requires_grad_(), edge.requires_grad_()
    node, pair, _, exact, _ = torch.ops.seqstruct.chain_marginals(*leaves, None, True)
    assert exact.tolist() == [False, True] and not node[0].any() and not pair[0].any()
    grads = torch.autograd.grad(node.square().sum() + pair.square().sum(), leaves)
    assert all(not x[0].any() and x.isfinite().all() for x in grads)
    arcs = torch.zeros(2, 4, 4, dtype=torch.float64)
    arcs[0, 0] = -1e4
    for operator in (torch.ops.seqstruct.projective_marginals, torch.ops.seqstruct.spanning_marginals):
        leaf = arcs.clone().requires_grad_()
        marginals, _, exact, _ = operator(leaf, None, False, True)
        assert exact.tolist() == [False, True] and not marginals[0].any()
        (grad,) = torch.autograd.grad(marginals.square().sum(), leaf)
        assert not grad[0].any() and grad.isfinite().all()
    spans, lengths = torch.zeros(3, 4, 4, 2, dtype=torch.float64), torch.tensor([4, 4, 4])
    spans[0, 1, 2], spans[0, 0, 3], spans[1, 2, 2] = 1500.0, -1500.0, -torch.inf
    leaf = spans.requires_grad_()
    marginals, _, exact, _ = torch.ops.seqstruct.constituency_marginals(leaf, lengths, True)
    assert exact.tolist() == [False, False, True] and not marginals[:2].any()
    (grad,) = torch.autograd.grad(marginals.square().sum(), leaf)
    assert not grad[:2].any() and grad.isfinite().all()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_makes_a_row_inexact(number, compiled):
    compiled(True)
    for place in ((0, 0, 1), (0, 4, 1)):
        unary, edge, arcs = torch.zeros(1, 5, 2), torch.zeros(1, 4, 2, 2), torch.zeros(1, 5, 5)
        unary[place], arcs[place] = number, number
        assert not torch.ops.seqstruct.chain_marginals(unary, edge, None, False)[3]
        assert not torch.ops.seqstruct.projective_marginals(arcs, None, False, False)[2]
        assert not torch.ops.seqstruct.spanning_marginals(arcs, None, False, False)[2]
    for labels in (1, 2):
        for place in ((0, 1, 1, 0), (0, 1, 2, 0), (0, 0, 3, 0)):
            spans = torch.zeros(1, 4, 4, labels)
            spans[place] = number
            assert not torch.ops.seqstruct.constituency_marginals(spans, torch.tensor([4]), False)[2]


@pytest.mark.parametrize("K", [2, 7])
def test_gradcheck_of_operators(K, compiled, generator):
    compiled(True)
    unary, edge, arcs = (
        torch.randn(x, generator=generator, dtype=torch.float64).requires_grad_()
        for x in ((2, 4, K), (2, 3, K, K), (2, 5, 5))
    )
    lengths = torch.tensor([4, 2])
    chains = torch.ops.seqstruct.chain_marginals
    projective, spanning = torch.ops.seqstruct.projective_marginals, torch.ops.seqstruct.spanning_marginals
    assert torch.autograd.gradcheck(lambda *x: chains(*x, lengths, True)[:2], (unary, edge))
    for single_root in (False, True):
        assert torch.autograd.gradcheck(lambda x, s=single_root: projective(x, lengths, s, True)[0], arcs)
        assert torch.autograd.gradcheck(lambda x, s=single_root: spanning(x, lengths, s, True)[:2], arcs)
        assert torch.autograd.gradgradcheck(lambda x, s=single_root: spanning(x, lengths, s, True)[:2], arcs)
    spans = torch.randn(2, 4, 4, K - 1, generator=generator, dtype=torch.float64).requires_grad_()
    brackets = torch.ops.seqstruct.constituency_marginals
    assert torch.autograd.gradcheck(lambda x: brackets(x, lengths, True)[0], spans)
    assert torch.autograd.gradgradcheck(lambda x: constituency_log_partition(x, lengths), spans)


def test_in_single_precision(compiled, generator):
    unary, edge, arcs, spans = (
        torch.randn(x, generator=generator).requires_grad_()
        for x in ((3, 13, 7), (3, 12, 7, 7), (3, 14, 14), (3, 13, 13, 3))
    )
    for results, leaves in (
        (lambda *x: of_chains(*x, None), (unary, edge)),
        (lambda x: of_trees("projective", x, None, False), (arcs,)),
        (lambda x: of_trees("all", x, None, False), (arcs,)),
        (lambda x: of_spans(x, torch.tensor([13, 7, 1])), (spans,)),
    ):
        compiled(True)
        found = results(*leaves)
        assert all(x.dtype == torch.float32 for x in found)
        exact = results(*(x.detach().double().requires_grad_() for x in leaves))
        torch.testing.assert_close([x.double() for x in found], exact, rtol=1e-5, atol=1e-5)
