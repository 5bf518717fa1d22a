"""Scans against a loop, the gated one under autograd: values, gradients, chunks, extremes."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops import scan
from seqstruct.ops.scan import before, gated_scan, last, max_plus, plus_times, scan_

INF = float("inf")
def draw(generator, B, T, d):
    shapes = (B, T, d), (B, T, d), (B, d)
    return [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]


def loop(step, decay, update, initial):
    states = [initial]
    for a, u in zip(decay.unbind(1), update.unbind(1), strict=True):
        states.append(step(a, u, states[-1]))
    return torch.stack(states[1:], 1) if len(states) > 1 else update.new_zeros(update.shape)


def gated(a, u, c):
    return a.sigmoid() * c + (1 - a.sigmoid()) * u


IN_PLACE = {
    "linear": (lambda a, u, c: a * c + u, plus_times, torch.mul),
    "max-plus": (lambda a, u, c: torch.where(a + c > u, a + c, u), max_plus, torch.add),
}


def assert_equal_to_loop(leaves, weights, tolerance=1e-12):
    found, expected = gated_scan(*leaves), loop(gated, *leaves)
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)
    if found.numel():
        gradients = (torch.autograd.grad(x, leaves, weights) for x in (found, expected))
        torch.testing.assert_close(*gradients, rtol=0, atol=tolerance)


@pytest.fixture(params=[None, 2, 3], ids=["plain", "chunks of 2", "chunks of 3"])
def chunks(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(scan, "CHUNK", request.param)
        monkeypatch.setattr(scan, "LONG", request.param)


SIZES = [(2, 1, 3), (3, 7, 5), (1, 13, 2), (2, 0, 3), (0, 5, 3), (2, 6, 1)]


@pytest.mark.parametrize(("B", "T", "d"), SIZES)
def test_equal_to_a_loop(chunks, generator, B, T, d):
    leaves = draw(generator, B, T, d)
    assert_equal_to_loop(leaves, torch.randn(B, T, d, generator=generator, dtype=torch.float64))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", IN_PLACE)
@pytest.mark.parametrize(("B", "T", "d"), [*SIZES, (1, scan.LONG + 5, 2)])
def test_in_place_equal_to_a_loop(chunks, generator, kind, B, T, d, reverse):
    step, in_place, times = IN_PLACE[kind]
    decay, update, initial = (x.detach() for x in draw(generator, B, T, d))
    decay = decay.clamp(-1, 0.9)
    expected = loop(step, *(x.flip(1) if reverse else x for x in (decay, update)), initial)
    found = scan_(update.clone(), decay, initial, in_place, times, reverse)
    torch.testing.assert_close(found, expected.flip(1) if reverse else expected, rtol=0, atol=1e-12)


def test_long_sequences_take_chunks(generator):
    T = scan.LONG + 5
    leaves = draw(generator, 1, T, 2)
    with torch.no_grad():
        leaves[0].sub_(1.0).clamp_(-3, 0.5)
    assert_equal_to_loop(leaves, torch.randn(1, T, 2, generator=generator, dtype=torch.float64), 1e-10)


@pytest.mark.parametrize("T", [0, 1, 5])
def test_gradcheck(chunks, generator, T):
    assert torch.autograd.gradcheck(gated_scan, draw(generator, 2, T, 3))


def test_columns_of_a_product(generator):
    projected = torch.randn(2, 5, 2, 3, generator=generator, dtype=torch.float64).requires_grad_()
    initial = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    views, copies = projected.unbind(2), [x.contiguous() for x in projected.unbind(2)]
    found, expected = (gated_scan(*x, initial) for x in (views, copies))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    gradients = (torch.autograd.grad(x.square().sum(), projected)[0] for x in (found, expected))
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-14)


def test_cut_and_resumed(generator):
    decay, update, initial = draw(generator, 3, 7, 2)
    states, state, parts = gated_scan(decay, update, initial), initial, []
    for cut in (slice(0, 3), slice(3, 3), slice(3, 4), slice(4, 7)):
        parts.append(gated_scan(decay[:, cut], update[:, cut], state))
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


def test_max_plus_starts_from_nothing(chunks):
    score = torch.tensor([[[-INF], [-2.0], [-3.0], [-3.0], [-9.0]]], dtype=torch.float64)
    states = scan_(score.clone(), torch.full_like(score, -1.0), torch.full_like(score[:, 0], -INF), max_plus, torch.add)
    assert states.flatten().tolist() == [-INF, -2, -3, -3, -4]


def test_no_initial_state_is_zero(generator):
    decay, update, initial = draw(generator, 2, 4, 3)
    assert torch.equal(gated_scan(decay, update), gated_scan(decay, update, torch.zeros_like(initial)))


def test_types(generator):
    half = [x.detach().bfloat16() for x in draw(generator, 2, 4, 3)]
    assert torch.equal(gated_scan(*half), gated_scan(*(x.float() for x in half)).bfloat16())


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"two tensors B T d of one shape, got \(2, 3, 4\) and \(2, 3, 5\)"):
        gated_scan(torch.zeros(2, 3, 4), torch.zeros(2, 3, 5))
    with pytest.raises(ValueError, match="expected an initial state 2 x 4, got 2 x 5"):
        gated_scan(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4), torch.zeros(2, 5))
