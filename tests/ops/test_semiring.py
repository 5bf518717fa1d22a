"""Laws of the semirings, and what their values and gradients mean."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.semiring import EntropySemiring, LogSemiring, MaxSemiring, RealSemiring, SamplingSemiring, log_sum

INF = float("inf")
SEMIRINGS = [LogSemiring(), MaxSemiring(), RealSemiring(), EntropySemiring(), SamplingSemiring(torch.Generator())]
named = pytest.mark.parametrize("semiring", SEMIRINGS, ids=lambda s: type(s).__name__)


@named
def test_laws(generator, semiring):
    x, y, z = (semiring.lift(torch.randn(5, generator=generator, dtype=torch.float64)) for _ in range(3))
    if isinstance(semiring, EntropySemiring):
        x = torch.stack([x[0], y[0].abs()])
    zero, one = (neutral((5,), x[0]) for neutral in (semiring.zero, semiring.one))

    def plus(*terms):
        return semiring.sum(torch.stack(terms, -1), -1)

    torch.testing.assert_close(semiring.times(x, one), x)
    torch.testing.assert_close(plus(x, zero), x)
    torch.testing.assert_close(plus(zero, zero)[0], zero[0])
    torch.testing.assert_close(plus(semiring.times(x, zero), y), y)
    torch.testing.assert_close(plus(x, y, z), plus(plus(z, y), x))
    torch.testing.assert_close(semiring.times(x, plus(y, z)), plus(semiring.times(x, y), semiring.times(x, z)))


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
