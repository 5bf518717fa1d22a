"""Scans against a loop under autograd: values, gradients, chunks, extremes."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops import scan
from seqstruct.ops.scan import before, gated_scan, last, linear_scan, max_plus_scan

INF = float("inf")
STEPS = {
    linear_scan: lambda a, u, c: a * c + u,
    gated_scan: lambda a, u, c: a.sigmoid() * c + (1 - a.sigmoid()) * u,
    max_plus_scan: lambda a, u, c: torch.where(a + c > u, a + c, u),
}
SCANS = pytest.mark.parametrize("scanned", STEPS, ids=lambda f: f.__name__)


def draw(generator, B, T, d, dtype=torch.float64):
    shapes = (B, T, d), (B, T, d), (B, d)
    return [torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in shapes]


def loop(scanned, decay, update, initial):
    states = [initial]
    for a, u in zip(decay.unbind(1), update.unbind(1), strict=True):
        states.append(STEPS[scanned](a, u, states[-1]))
    return torch.stack(states[1:], 1) if len(states) > 1 else update.new_zeros(update.shape)


def assert_equal_to_loop(scanned, leaves, weights, tolerance=1e-12):
    found, expected = scanned(*leaves), loop(scanned, *leaves)
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)
    if found.numel():
        gradients = (torch.autograd.grad(x, leaves, weights) for x in (found, expected))
        torch.testing.assert_close(*gradients, rtol=0, atol=tolerance)


@pytest.fixture(params=[None, 2, 3], ids=["plain", "chunks of 2", "chunks of 3"])
def chunks(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(scan, "CHUNK", request.param)
        monkeypatch.setattr(scan, "LONG", request.param)


@SCANS
@pytest.mark.parametrize(("B", "T", "d"), [(2, 1, 3), (3, 7, 5), (1, 13, 2), (2, 0, 3), (0, 5, 3), (2, 6, 1)])
def test_equal_to_a_loop(chunks, generator, scanned, B, T, d):
    leaves = draw(generator, B, T, d)
    assert_equal_to_loop(scanned, leaves, torch.randn(B, T, d, generator=generator, dtype=torch.float64))


@SCANS
def test_long_sequences_take_chunks(generator, scanned):
    T = scan.LONG + 5
    leaves = draw(generator, 1, T, 2)
    with torch.no_grad():
        leaves[0].sub_(1.0).clamp_(-3, 0.5 if scanned is gated_scan else -0.1)
    assert_equal_to_loop(scanned, leaves, torch.randn(1, T, 2, generator=generator, dtype=torch.float64), 1e-10)


@SCANS
@pytest.mark.parametrize("T", [0, 1, 5])
def test_gradcheck(chunks, generator, scanned, T):
    assert torch.autograd.gradcheck(scanned, draw(generator, 2, T, 3))


@SCANS
def test_columns_of_a_product(generator, scanned):
    projected = torch.randn(2, 5, 2, 3, generator=generator, dtype=torch.float64).requires_grad_()
    initial = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    views, copies = projected.unbind(2), [x.contiguous() for x in projected.unbind(2)]
    found, expected = (scanned(*x, initial) for x in (views, copies))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    gradients = (torch.autograd.grad(x.square().sum(), projected)[0] for x in (found, expected))
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-14)


@SCANS
def test_cut_and_resumed(generator, scanned):
    decay, update, initial = draw(generator, 3, 7, 2)
    states, state, parts = scanned(decay, update, initial), initial, []
    for cut in (slice(0, 3), slice(3, 3), slice(3, 4), slice(4, 7)):
        parts.append(scanned(decay[:, cut], update[:, cut], state))
        state = last(parts[-1], state)
    torch.testing.assert_close(torch.cat(parts, 1), states, rtol=0, atol=1e-14)
    assert torch.equal(before(states, initial)[:, 1:], states[:, :-1])
    assert torch.equal(before(states, initial)[:, 0], initial)


def test_gates_of_zero_and_one_are_exact(chunks, generator):
    _, update, initial = draw(generator, 2, 9, 3)
    logits = torch.full_like(update, INF).requires_grad_()
    kept = gated_scan(logits, update, initial)
    assert torch.equal(kept, initial.unsqueeze(1).expand_as(kept))
    weights = torch.randn(kept.shape, generator=generator, dtype=torch.float64)
    grads = torch.autograd.grad(kept, [logits, update, initial], weights)
    assert not grads[0].any()
    assert not grads[1].any()
    torch.testing.assert_close(grads[2], weights.sum(1))
    logits = torch.full_like(update, -INF).requires_grad_()
    taken = gated_scan(logits, update, initial)
    assert torch.equal(taken, update)
    grads = torch.autograd.grad(taken, [logits, update, initial], weights)
    assert not grads[0].any()
    assert torch.equal(grads[1], weights)
    assert not grads[2].any()


def test_max_plus_starts_from_nothing_and_names_one_way(chunks):
    score = torch.tensor([[[-INF], [-2.0], [-3.0], [-3.0], [-9.0]]], dtype=torch.float64, requires_grad=True)
    decay = torch.full_like(score, -1.0).requires_grad_()
    states = max_plus_scan(decay, score)
    assert states.flatten().tolist() == [-INF, -2, -3, -3, -4]
    of_decay, of_score = torch.autograd.grad(states[:, 1:].sum(), [decay, score])
    assert of_score.flatten().tolist() == [0, 1, 1, 2, 0]  # at the third step both ways are equal: the score's
    assert of_decay.flatten().tolist() == [0, 0, 0, 0, 1]


@SCANS
def test_no_initial_state_is_the_zero_of_the_semiring(generator, scanned):
    decay, update, initial = draw(generator, 2, 4, 3)
    zero = torch.full_like(initial, -INF if scanned is max_plus_scan else 0.0)
    assert torch.equal(scanned(decay, update), scanned(decay, update, zero))


def test_types(generator):
    half = [x.detach().bfloat16() for x in draw(generator, 2, 4, 3)]
    assert torch.equal(gated_scan(*half), gated_scan(*(x.float() for x in half)).bfloat16())


@SCANS
def test_shapes_are_checked(scanned):
    with pytest.raises(ValueError, match=r"two tensors B T d of one shape, got \(2, 3, 4\) and \(2, 3, 5\)"):
        scanned(torch.zeros(2, 3, 4), torch.zeros(2, 3, 5))
    with pytest.raises(ValueError, match="expected an initial state 2 x 4, got 2 x 5"):
        scanned(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4), torch.zeros(2, 5))
