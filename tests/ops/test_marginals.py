"""The pair of passes and the definition behind it, on the smallest family: one of n parts."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from seqstruct.ops.marginals import FirstPass, by_autograd, entropy, log_partition, marginals, structure
from seqstruct.ops.semiring import MaxSemiring, SamplingSemiring


class Kept(NamedTuple):
    shares: Tensor


class Choice(NamedTuple):
    """Rows with a potential above `most` are not done by the passes, which spoil them."""

    most: float = 10.0

    def select(self, rows):
        return self

    def total(self, potentials, semiring):
        return semiring.value(semiring.sum(semiring.lift(*potentials), -1))

    @torch.no_grad()
    def first_pass(self, potentials, need_total):
        scores = potentials[0].double()
        exact = scores.abs().amax(1) <= self.most
        scores = scores.masked_fill(~exact.unsqueeze(1), torch.nan)
        return FirstPass((scores.softmax(1),), scores.logsumexp(1), exact, Kept(scores.softmax(1)), None)

    def second_pass(self, kept, loan, direction):
        return (kept.shares * (direction[0] - (kept.shares * direction[0]).sum(1, keepdim=True)),)

    def refuse(self, potentials):
        if not bool((potentials[0] < torch.inf).all()):
            raise ValueError("no number")


@pytest.fixture(params=[[], [1], [0, 1, 2]], ids=["all by the passes", "one not", "none"])
def scores(request, generator):
    found = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    found[request.param] += 20.0
    return found.requires_grad_()


def test_log_partition_and_its_two_derivatives(scores, generator):
    found = log_partition(Choice(), scores)
    torch.testing.assert_close(found, scores.logsumexp(1))
    weights = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    (first,) = torch.autograd.grad(found.sum(), scores, create_graph=True)
    torch.testing.assert_close(first, scores.softmax(1))
    second, truth = (torch.autograd.grad((x * weights).sum(), scores)[0] for x in (first, scores.softmax(1)))
    torch.testing.assert_close(second, truth, rtol=0, atol=1e-14)
    assert torch.autograd.gradgradcheck(lambda x: log_partition(Choice(), x), scores)


def test_marginals_and_their_derivative(scores):
    (found,) = marginals(Choice(), scores)
    torch.testing.assert_close(found, scores.softmax(1))
    assert torch.autograd.gradcheck(lambda x: marginals(Choice(), x)[0], scores)


def test_types_are_those_of_the_potentials(scores):
    single = scores.detach().float().requires_grad_()
    (found,), total = marginals(Choice(), single), log_partition(Choice(), single)
    (grad,) = torch.autograd.grad(found.square().sum() + total.sum(), single)
    assert {found.dtype, total.dtype, grad.dtype, entropy(Choice(), single).dtype} == {torch.float32}
    assert grad.isfinite().all()


def test_entropy(scores):
    torch.testing.assert_close(entropy(Choice(), scores), torch.special.entr(scores.softmax(1)).sum(1))
    assert torch.autograd.gradcheck(lambda x: entropy(Choice(), x), scores)


def test_the_best_and_samples(scores, generator):
    best, score = structure(Choice(), MaxSemiring(), scores)
    assert torch.equal(best.argmax(1), scores.argmax(1)) and torch.equal(score, scores.amax(1))
    assert not best.requires_grad and not score.requires_grad
    drawn, _ = structure(Choice(), SamplingSemiring(generator), scores.repeat(4000, 1))
    torch.testing.assert_close(drawn.view(4000, 3, 5).mean(0), scores.detach().softmax(1), rtol=0, atol=0.03)


def test_what_is_no_number_is_refused(scores):
    with torch.no_grad():
        scores[1, 2] = torch.inf
    for form in (log_partition, marginals, entropy):
        with pytest.raises(ValueError, match="no number"):
            form(Choice(), scores)
    with pytest.raises(ValueError, match="no number"):
        structure(Choice(), MaxSemiring(), scores)


def test_no_graph_where_none_is_wanted(scores):
    with torch.no_grad():
        assert not log_partition(Choice(), scores).requires_grad
        assert not marginals(Choice(), scores)[0].requires_grad
    total, (derivatives,) = by_autograd(lambda x: x.logsumexp(1), scores.detach())
    assert not total.requires_grad and not derivatives.requires_grad
    torch.testing.assert_close(derivatives, scores.detach().softmax(1))
