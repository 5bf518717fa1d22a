"""Laws of the semirings, and what their values and gradients mean."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.semiring import (
    EntropySemiring,
    ExactLogSemiring,
    KBestSemiring,
    LogSemiring,
    MaxSemiring,
    RealSemiring,
    SamplingSemiring,
    log_sum,
)

INF = float("inf")
SEMIRINGS = [LogSemiring(), MaxSemiring(), KBestSemiring(3), RealSemiring(), ExactLogSemiring(), EntropySemiring()]
SEMIRINGS.append(SamplingSemiring(torch.Generator()))
named = pytest.mark.parametrize("semiring", SEMIRINGS, ids=lambda s: type(s).__name__)


@named
def test_laws(generator, semiring):
    x, y, z = (semiring.lift(torch.randn(5, generator=generator, dtype=torch.float64)) for _ in range(3))
    if isinstance(semiring, EntropySemiring):
        x[2] = y[0].abs()
    zero, one = (neutral((5,), x[0]) for neutral in (semiring.zero, semiring.one))

    def plus(*terms):
        return semiring.sum(torch.stack(terms, -1), -1)

    def same(left, right):
        for element in (left, right):
            if isinstance(semiring, ExactLogSemiring):
                element[0] += element[1]
                element[1] = 0.0
        torch.testing.assert_close(left, right)

    same(semiring.times(x, one), x.clone())
    same(plus(x, zero), x.clone())
    same(plus(zero, zero), zero.clone())
    same(plus(semiring.times(x, zero), y), y.clone())
    same(plus(x, y, z), plus(plus(z, y), x))
    same(semiring.times(x, plus(y, z)), plus(semiring.times(x, y), semiring.times(x, z)))
    if isinstance(semiring, ExactLogSemiring):
        same(semiring.times(x, semiring.inverse(x)), one.clone())


@pytest.mark.parametrize("semiring", [ExactLogSemiring(), EntropySemiring()])
def test_what_all_terms_have_costs_no_digits(generator, semiring):
    """-1e30, taken before some terms and after others."""
    x, y = torch.randn(2, 3, 7, generator=generator, dtype=torch.float64)
    mask = semiring.lift(torch.full((3, 7), -1e30, dtype=torch.float64))
    one, other = semiring.lift(x), semiring.lift(y)
    early = semiring.times(semiring.times(mask, one), other)
    late = semiring.times(semiring.times(one, other), mask)
    terms = torch.where(torch.arange(7) < 3, early, late)
    found = semiring.sum(semiring.times(terms, semiring.inverse(mask)), -1)
    expected = semiring.sum(semiring.lift(x + y), -1)
    torch.testing.assert_close(found[:2].sum(0), expected[:2].sum(0))
    torch.testing.assert_close(found[2:], expected[2:])


def test_entropy_of_one_choice(generator):
    weights = torch.randn(7, 13, generator=generator, dtype=torch.float64)
    weights[2, :5] = -INF
    p = weights.softmax(1)
    semiring = EntropySemiring()
    found = semiring.value(semiring.sum(semiring.lift(weights), -1))
    torch.testing.assert_close(found, torch.special.entr(p).sum(1))


@named
def test_terms_without_weight_have_finite_derivatives(semiring):
    weights = torch.tensor([[-INF, -INF, -INF], [-INF, 0.5, -1.0]], dtype=torch.float64, requires_grad=True)
    value = semiring.value(semiring.sum(semiring.lift(weights), -1))
    (grad,) = torch.autograd.grad(value.sum(), weights)
    assert grad.isfinite().all()
    assert grad[1, 0] == 0


def test_log_sum_twice_differentiable(generator):
    x = torch.randn(3, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: log_sum(x, -1), x)
    assert torch.autograd.gradgradcheck(lambda x: log_sum(x, -1), x)


def test_the_sampled_term_has_the_right_frequency(generator):
    weights = torch.tensor([0.1, 0.0, 0.6, 0.3], dtype=torch.float64).log().requires_grad_()
    draws = 20000
    semiring = SamplingSemiring(generator)
    total = semiring.value(semiring.sum(semiring.lift(weights.expand(draws, 4)), -1))
    (counts,) = torch.autograd.grad(total.sum(), weights)
    assert counts[1] == 0
    assert counts.sum() == draws
    torch.testing.assert_close(counts / draws, weights.detach().exp(), rtol=0, atol=0.02)


def test_a_sample_follows_its_generator():
    def draw(seed):
        weights = torch.zeros(50, 4, requires_grad=True)
        semiring = SamplingSemiring(torch.Generator().manual_seed(seed))
        return torch.autograd.grad(semiring.sum(semiring.lift(weights), -1).sum(), weights)[0]

    assert torch.equal(draw(3), draw(3))
    assert not torch.equal(draw(3), draw(4))
