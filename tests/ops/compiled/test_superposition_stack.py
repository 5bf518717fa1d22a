"""The compiled superposition stack against that in PyTorch."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from seqstruct.ops.cells.stack_lstm import stack_lstm
from seqstruct.ops.superposition import SuperpositionTape, superposition_stack
from seqstruct.ops.superposition.compiled import SLICE
from seqstruct.ops.superposition.naive import naive_stack


def draw(generator, B, T, m, height, dtype=torch.float64):
    actions = torch.randn(B, T, 3, generator=generator, dtype=torch.float64).mul(3).softmax(-1)
    pushed = torch.randn(B, T, m, generator=generator, dtype=torch.float64)
    start = torch.randn(B, height, m, generator=generator, dtype=torch.float64)
    return [x.to(dtype).requires_grad_() for x in (actions, pushed, start)]


def by_recurrence(actions, pushed, stack, *, need_final):
    readings, final = naive_stack(actions, pushed, stack)
    return readings, final if need_final else None


def with_gradients(inputs, need_final, form=superposition_stack):
    """Readings, the last stack if any, and gradients of a weighted sum of these."""
    results = [x for x in form(*inputs, need_final=need_final) if x is not None]
    loss = sum((x * torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x)).sum() for x in results)
    return [*results, *torch.autograd.grad(loss, inputs)]


@pytest.mark.parametrize("need_final", [True, False])
@pytest.mark.parametrize("height", [0, 1, 4, 17])
@pytest.mark.parametrize("T", [1, 2, 13])
@pytest.mark.parametrize("m", [1, 7, 2 * SLICE + 5])
def test_values_and_gradients_are_those_of_pytorch(m, T, height, need_final, both, generator):
    inputs = draw(generator, 3, T, m, height)
    found, expected = both(lambda: with_gradients(inputs, need_final))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    truth = with_gradients(inputs, need_final, by_recurrence)
    torch.testing.assert_close(expected, truth, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("m", [5, 32])
def test_in_single_precision(m, compiled, generator):
    inputs = draw(generator, 2, 80, m, 3, torch.float32)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    compiled(True)
    for ours, theirs in zip(*(with_gradients(x, False) for x in (inputs, exact)), strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).abs().max() <= 2e-6 * theirs.abs().max()


@pytest.mark.parametrize("spread", [50.0, 100.0])
def test_hard_actions(spread, both, generator):
    """Probabilities that are 0 or next to it."""
    logits = spread * torch.randn(2, 13, 3, generator=generator, dtype=torch.float64).sign()
    logits[0, 3], logits[1, 5] = (torch.tensor(x) for x in ([-torch.inf, 0.0, -torch.inf], [-torch.inf, 1.0, 2.0]))
    _, pushed, start = draw(generator, 2, 13, 7, 2)
    leaves = logits.requires_grad_(), pushed, start

    def run():
        readings, final = superposition_stack(logits.softmax(-1), pushed, start)
        return [readings, final, *torch.autograd.grad(readings.square().sum(), leaves)]

    torch.testing.assert_close(*both(run), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("need_final", [True, False])
def test_gradients_by_differences(need_final, compiled, generator):
    compiled(True)
    inputs = draw(generator, 2, 5, 3, 2)

    def run(*inputs):
        return tuple(x for x in superposition_stack(*inputs, need_final=need_final) if x is not None)

    assert torch.autograd.gradcheck(run, inputs)


@pytest.mark.parametrize("shape", [(0, 5, 3), (2, 0, 3), (2, 5, 0)], ids=str)
def test_nothing_to_compute(shape, compiled, generator):
    compiled(True)
    readings, final = superposition_stack(*draw(generator, *shape, 2))
    assert readings.shape == shape
    assert final.shape == (shape[0], shape[1] + 2, shape[2])


def test_inputs_may_be_views(compiled, generator):
    compiled(True)
    inputs = draw(generator, 2, 5, 7, 3)
    turned = [x.detach().transpose(0, 1).contiguous().transpose(0, 1).requires_grad_() for x in inputs]
    assert not turned[0].is_contiguous()
    assert all(torch.equal(*x) for x in zip(*(with_gradients(x, True) for x in (inputs, turned)), strict=True))


@pytest.mark.parametrize("chosen", [0, 1])
def test_only_one_result_is_needed(chosen, both, generator):
    inputs = draw(generator, 2, 5, 7, 3)
    found = both(lambda: torch.autograd.grad(superposition_stack(*inputs)[chosen].square().sum(), inputs))
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-12)


def test_without_gradients_nothing_is_kept(compiled, generator):
    compiled(True)
    inputs = draw(generator, 2, 13, 20, 3)
    expected = superposition_stack(*inputs)
    with torch.no_grad():
        results = superposition_stack(*inputs)
    assert all(torch.equal(x, y) and not x.requires_grad for x, y in zip(results, expected, strict=True))


@pytest.mark.parametrize("batch", [1, 3])
def test_threads_share_batch_and_columns(batch, shared, generator):
    inputs = draw(generator, batch, 13, 2 * SLICE + 5, 3)
    torch.testing.assert_close(*shared(lambda: with_gradients(inputs, True)), rtol=0, atol=0)


def recur(generator, B, T, m, height, sigmoid, dtype=torch.float64):
    """A stack LSTM's inputs, and what computes its hidden states and gradients."""
    hidden, reading, controls = 5, m, 3 + m
    shapes = [(T, B, 4 * hidden), (B, hidden), (B, hidden), (reading + hidden, 4 * hidden), (hidden, controls)]
    shapes += [(controls,), (B, height, m)]
    inputs = [torch.randn(*x, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for x in shapes]

    def run():
        states, _ = stack_lstm(*inputs, partial(SuperpositionTape, sigmoid=sigmoid))
        return [states, *torch.autograd.grad((states**2).sum(), inputs)]

    return run


@pytest.mark.parametrize("sigmoid", [True, False])
@pytest.mark.parametrize(("T", "height"), [(1, 2), (2, 0), (7, 1), (13, 4), (5, 17)])
@pytest.mark.parametrize("m", [1, 7, 18])
def test_steps_of_a_recurrent_network_are_those_of_pytorch(m, T, height, sigmoid, both, generator):
    run = recur(generator, 3, T, m, height, sigmoid)
    torch.testing.assert_close(*both(run), rtol=1e-10, atol=1e-12)


def test_steps_of_a_recurrent_network_in_single_precision(both, generator):
    for ours, theirs in zip(*both(recur(generator, 3, 13, 18, 4, True, torch.float32)), strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).abs().max() <= 1e-4 * theirs.abs().max()


def test_steps_that_are_worth_it_are_shared(shared, generator):
    torch.testing.assert_close(*shared(recur(generator, 3, 13, 800, 7, True)), rtol=0, atol=0)
