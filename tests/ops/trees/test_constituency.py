"""Bracketings by their chart: in probability space and by the definition in pairs of logarithms."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.marginals import by_autograd
from seqstruct.ops.semiring import ExactLogSemiring
from seqstruct.ops.trees import constituency_log_partition, constituency_marginals, constituency_total
from tests.ops.trees.enumeration import trees_over

CLOSE = {"rtol": 1e-9, "atol": 1e-11}


def defined(spans, lengths):
    """Log-partition and marginals by the definition."""
    semiring = ExactLogSemiring()
    there = torch.ones_like(spans[0], dtype=torch.bool).triu()
    there = there & (torch.arange(spans.size(1)) < lengths[:, None, None])
    masked = spans.masked_fill(~there, -torch.inf)
    return by_autograd(lambda x: semiring.value(constituency_total(semiring.lift(x), lengths, semiring)), masked)


SIZES = [(1, 1.0), (2, 1.0), (5, 1.0), (17, 2.0), (33, 1.0), (13, 30.0), (9, 1e3), (7, 1e30)]


@pytest.mark.parametrize("n, spread", SIZES)
def test_both_ways_agree(generator, n, spread):
    spans = spread * torch.randn(4, n, n, generator=generator, dtype=torch.float64)
    spans += torch.tensor([0.0, 3.0, -40.0, 500.0])[:, None, None]  # of all spans alike
    lengths = torch.tensor([n, n - 1, max(1, n // 2), n])
    total, (marginals,) = defined(spans, lengths)
    torch.testing.assert_close(constituency_log_partition(spans, lengths), total, **CLOSE)
    torch.testing.assert_close(constituency_marginals(spans, lengths), marginals, **CLOSE)


@pytest.mark.parametrize("seed", [2, 4])
def test_items_that_were_lost_before_the_others_were_raised(seed, compiled_or_not):
    draw = torch.Generator().manual_seed(seed)
    spans, lengths = 100 * torch.randn(48, 24, 24, generator=draw, dtype=torch.float64), torch.full((48,), 24)
    total, (marginals,) = defined(spans, lengths)
    torch.testing.assert_close(constituency_log_partition(spans, lengths), total, **CLOSE)
    torch.testing.assert_close(constituency_marginals(spans, lengths), marginals, **CLOSE)


@pytest.mark.parametrize("n, spread", [(6, 1.0), (11, 3.0), (8, 100.0)])
def test_derivatives_of_marginals_agree(generator, n, spread):
    spans = (spread * torch.randn(3, n, n, generator=generator, dtype=torch.float64)).requires_grad_()
    lengths, weights = torch.tensor([n, 0, n - 2]), torch.randn(3, n, n, generator=generator, dtype=torch.float64)
    (found,) = torch.autograd.grad((constituency_marginals(spans, lengths) * weights).sum(), spans)
    _, (marginals,) = defined(spans, lengths)
    (wanted,) = torch.autograd.grad((marginals * weights).sum(), spans)
    torch.testing.assert_close(found, wanted, **CLOSE)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("shift", [0.0, -800.0, 2.0**40])
def test_labelled_trees_by_enumeration(n, shift, generator, compiled_or_not):
    """Of all spans alike a shift, which no digit is lost by, changes no tree's share."""
    spans = (torch.randn(1, n, n, 3, generator=generator, dtype=torch.float64) * 2**10).round() / 2**10
    spans[0, 0, 0, 1] = -torch.inf
    trees = [torch.tensor(x).unbind(1) for x in trees_over(0, n - 1)]
    scores = torch.stack([spans[0].logsumexp(2)[x].sum() for x in trees])
    wanted = torch.zeros(n, n, 3, dtype=torch.float64)
    for tree, share in zip(trees, scores.softmax(0), strict=True):
        wanted[tree] += share * spans[0][tree].softmax(1)
    lengths, total = torch.tensor([n]), scores.logsumexp(0) + shift * (2 * n - 1)
    torch.testing.assert_close(constituency_log_partition(spans + shift, lengths)[0], total, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(constituency_marginals(spans + shift, lengths)[0], wanted, rtol=1e-11, atol=1e-12)


def test_where_no_tree_is_possible_all_is_0(generator, compiled_or_not):
    spans = torch.randn(4, 5, 5, 2, generator=generator)
    spans[0, 2, 2], spans[1, 0, 4] = -torch.inf, -torch.inf
    spans[2, range(4), range(1, 5)] = -torch.inf
    lengths = torch.tensor([5, 5, 5, 0])
    assert constituency_log_partition(spans, lengths).tolist() == [-torch.inf] * 3 + [0.0]
    leaf = spans.requires_grad_()
    found = constituency_marginals(leaf, lengths)
    (grad,) = torch.autograd.grad(found.square().sum(), leaf)
    assert not found.any() and not grad.any()


def test_a_long_sentence_stays_in_range(generator):
    """Of equal spans there are Catalan's number of trees, beyond float64 from 520 words on."""
    n = 600
    spans = torch.full((1, n, n), 0.25, dtype=torch.float64)
    catalan = torch.lgamma(torch.tensor([2 * n - 1.0, n, n + 1.0], dtype=torch.float64))
    wanted = catalan[0] - catalan[1] - catalan[2] + 0.25 * (2 * n - 1)
    torch.testing.assert_close(constituency_log_partition(spans, torch.tensor([n]))[0], wanted)


def test_what_is_no_number_is_named():
    spans = torch.zeros(1, 3, 3)
    spans[0, 1, 2] = torch.nan
    with pytest.raises(ValueError, match=r"spans: expected numbers or -inf, got nan at \[0, 1, 2\]"):
        constituency_marginals(spans, torch.tensor([3]))


def test_shapes_and_types_are_checked(compiled_or_not):
    """Whole numbers would be taken, and the logarithm cut off to one; lengths would go for all rows alike."""
    spans, lengths = torch.zeros(2, 3, 3), torch.tensor([3, 1])
    for wrong in (spans[:, 1:], spans[0], spans.long(), torch.zeros(2, 3, 3, 0), torch.zeros(2, 3, 3, 1, 1)):
        for function in (constituency_log_partition, constituency_marginals):
            with pytest.raises(ValueError, match="expected spans B n n or B n n L of a floating type, got"):
                function(wrong, lengths)
    for wrong in (lengths[1:], lengths.int(), lengths + 1, lengths - 2, lengths.unsqueeze(0)):
        for function in (constituency_log_partition, constituency_marginals):
            with pytest.raises(ValueError, match="expected lengths 2 long from 0 to 3, got"):
                function(spans, wrong)
