"""Log potentials brought to a maximum of 0, with and without loss of digits, and what is no number."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.log_potentials import level_, leveled, refuse_what_is_no_number
from seqstruct.ops.semiring import ExactLogSemiring, LogSemiring

INF = float("inf")


def test_in_place(generator):
    x = torch.randn(3, 5, 2, generator=generator, dtype=torch.float64)
    x[1, 2] = -INF
    found = x.clone()
    taken = level_(found, 2)
    assert taken.shape == (3, 5, 1)
    possible = x[..., 0] > -INF
    assert torch.equal(taken[..., 0][possible], x.amax(2)[possible])
    assert (found[possible].amax(1) == 0).all()
    assert (found[1, 2] == -INF).all() and taken.isfinite().all()


@pytest.mark.parametrize("semiring", [LogSemiring(), ExactLogSemiring()])
def test_elements(generator, semiring):
    x = torch.randn(3, 5, 2, generator=generator, dtype=torch.float64)
    x[1], x[2, 0, 0] = -INF, -INF
    elements, taken = leveled(x, semiring, 1, 2)
    assert taken[1] == 0 and torch.equal(taken[[0, 2]], x.amax((1, 2))[[0, 2]])
    back = semiring.value(semiring.times(elements, semiring.lift(taken.view(3, 1, 1))))
    torch.testing.assert_close(back, x, rtol=0, atol=1e-15)


def test_pairs_lose_no_digits():
    x = torch.tensor([[1e30, 0.3, -7.0]], dtype=torch.float64)
    elements, taken = leveled(x, ExactLogSemiring(), 1)
    semiring = ExactLogSemiring()
    assert torch.equal(semiring.value(semiring.times(elements, semiring.lift(taken.unsqueeze(1)))), x)


def test_what_is_no_number_is_refused_with_its_place():
    refuse_what_is_no_number("arcs", torch.tensor([0.0, -INF]))
    for number in (float("nan"), INF):
        x = torch.tensor([[0.0, number]], requires_grad=True)
        with pytest.raises(ValueError, match=rf"arcs: expected numbers or -inf, got {number} at \[0, 1\]"):
            refuse_what_is_no_number("arcs", x)
