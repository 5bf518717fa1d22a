"""Steps that gradients flow through: whole and partial backward passes, several ways on from one state, segments."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.pushdown import (
    PushdownState,
    pushdown_initial,
    pushdown_reading,
    pushdown_stack,
    pushdown_step,
    pushdown_steps,
)
from tests.ops.pushdown.test_pushdown import check_same, doomed, draw
from tests.ops.pushdown.test_step import SIZES, advance, by_steps

LONG = 19  # steps


def leaves(generator, B, T, m=2):
    return [x.requires_grad_() for x in draw(generator, B, T, 2, 3, m)]


def in_segments(logits, pushed, bottom, *, states, symbols):
    """Several steps at a time, of which there may be none."""
    state = pushdown_initial(bottom, len(pushed), states=states, symbols=symbols)
    readings, at = [], 0
    for count in (2, 0, 1, logits.size(1)):
        segment = slice(at, min(at + count, logits.size(1)))
        found, state = pushdown_steps(state, logits[:, segment], pushed[:, segment], states=states, symbols=symbols)
        readings.append(found)
        at = segment.stop
    return torch.cat(readings, 1)


@pytest.mark.parametrize(("form", "T"), [(by_steps, 1), (by_steps, 3), (in_segments, 2), (in_segments, 4)])
def test_gradcheck(generator, form, T):
    inputs = [x.requires_grad_() for x in draw(generator, 2, T, 2, 2, 2)]
    assert torch.autograd.gradcheck(lambda *inputs: form(*inputs, states=2, symbols=2), inputs)


def test_gradients_of_rows_out_of_range(generator):
    inputs = doomed(generator)
    check_same(by_steps, pushdown_stack, inputs, generator, 1e-11, 1e-9, states=2, symbols=2)


def test_backward_passes_that_begin_at_different_steps(generator):
    """One graph, several passes: nothing of an earlier pass is left over in a later one."""
    inputs = leaves(generator, 2, LONG)
    readings = by_steps(*inputs, **SIZES)
    whole = pushdown_stack(*inputs, **SIZES)
    ends = [LONG - 1], [3], [11, 2], [0], [LONG - 2, 7, 5]
    for times in ends:
        found = torch.autograd.grad(readings[:, times].square().sum(), inputs, retain_graph=True)
        expected = torch.autograd.grad(whole[:, times].square().sum(), inputs, retain_graph=True)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


def test_a_pass_that_stops_halfway(generator):
    logits, pushed, bottom = draw(generator, 2, 8, 2, 3, 2)
    steps = [x.requires_grad_() for x in logits.unbind(1)]
    state, readings = pushdown_initial(bottom, 2, **SIZES), []
    for t, step in enumerate(steps):
        state = pushdown_step(state, step, pushed[:, t], **SIZES)
        readings.append(pushdown_reading(state))
    late = torch.autograd.grad(readings[7].sum(), steps[5], retain_graph=True)[0]
    early = torch.autograd.grad(readings[4].sum(), steps[:5], retain_graph=True)
    whole = logits.clone().requires_grad_()
    expected = pushdown_stack(whole, pushed, bottom, **SIZES)
    torch.testing.assert_close(
        late, torch.autograd.grad(expected[:, 7].sum(), whole, retain_graph=True)[0][:, 5], rtol=0, atol=1e-12
    )
    truth = torch.autograd.grad(expected[:, 4].sum(), whole)[0][:, :5]
    torch.testing.assert_close(torch.stack(early, 1), truth, rtol=0, atol=1e-12)


def test_an_empty_batch(generator):
    """By steps with gradients and without."""
    inputs = leaves(generator, 0, 5)
    for form in (by_steps, in_segments, pushdown_stack):
        readings = form(*inputs, **SIZES)
        assert readings.shape == (0, 5, 12)
        assert not any(gradient.any() for gradient in torch.autograd.grad(readings.sum(), inputs))
    for recorded in (True, False):
        with torch.set_grad_enabled(recorded):
            readings, state = advance(pushdown_initial(inputs[2], 0, **SIZES), inputs[0], inputs[1], **SIZES)
        assert readings.shape == (0, 5, 12)
        assert pushdown_reading(state).shape == (0, 12)


@pytest.mark.parametrize("T", [1, 3, 13])
@pytest.mark.parametrize(("states", "symbols"), [(2, 1), (3, 2)])
def test_segments_equal_the_parallel_form(generator, T, states, symbols):
    inputs, sizes = draw(generator, 2, T, states, symbols, 3, spread=2.0), {"states": states, "symbols": symbols}
    _, expected = check_same(in_segments, pushdown_stack, inputs, generator, 1e-12, 1e-11, **sizes)
    with torch.no_grad():
        torch.testing.assert_close(in_segments(*inputs, **sizes), expected, rtol=0, atol=1e-12)


def test_a_bottom_of_each_row(generator):
    logits, pushed, _ = draw(generator, 3, 4, 2, 3, 2)
    bottom = torch.rand(3, 2, generator=generator, dtype=torch.float64)
    rows = [pushdown_stack(logits[b : b + 1], pushed[b : b + 1], bottom[b], **SIZES) for b in range(3)]
    torch.testing.assert_close(pushdown_stack(logits, pushed, bottom, **SIZES), torch.cat(rows), rtol=0, atol=1e-13)


def test_two_steps_from_one_state(generator):
    """The gradients of both are right."""
    inputs = leaves(generator, 2, 6)
    _, state = advance(pushdown_initial(inputs[2], 2, **SIZES), inputs[0][:, :4], inputs[1][:, :4], **SIZES)
    branches = [advance(state, inputs[0][:, t], inputs[1][:, t], **SIZES)[0] for t in ([4, 5], [5, 4])]
    orders = [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 5, 4]]
    whole = [pushdown_stack(inputs[0][:, t], inputs[1][:, t], inputs[2], **SIZES)[:, 4:] for t in orders]
    torch.testing.assert_close(branches, whole, rtol=0, atol=1e-12)
    found = torch.autograd.grad(sum((x * k).sum() for k, x in enumerate(branches, 1)), inputs)
    truth = torch.autograd.grad(sum((x * k).sum() for k, x in enumerate(whole, 1)), inputs)
    torch.testing.assert_close(found, truth, rtol=0, atol=1e-11)


def test_looking_ahead_without_gradients_changes_nothing(generator):
    inputs = leaves(generator, 2, 7)
    first, state = advance(pushdown_initial(inputs[2], 2, **SIZES), inputs[0][:, :4], inputs[1][:, :4], **SIZES)
    with torch.no_grad():
        ahead, _ = advance(state, inputs[0][:, [6, 5]], inputs[1][:, [6, 5]], **SIZES)
        order = [0, 1, 2, 3, 6, 5]
        other = pushdown_stack(inputs[0][:, order], inputs[1][:, order], inputs[2], **SIZES)
    torch.testing.assert_close(ahead, other[:, 4:], rtol=0, atol=1e-12)
    second, _ = advance(state, inputs[0][:, 4:], inputs[1][:, 4:], **SIZES)
    whole = pushdown_stack(*inputs, **SIZES)
    found = torch.autograd.grad(torch.cat([first, second], 1).square().sum(), inputs)
    torch.testing.assert_close(found, torch.autograd.grad(whole.square().sum(), inputs), rtol=0, atol=1e-11)


def test_a_detached_state_begins_a_graph_of_its_own(generator):
    inputs = leaves(generator, 2, 7)
    _, state = advance(pushdown_initial(inputs[2], 2, **SIZES), inputs[0][:, :4], inputs[1][:, :4], **SIZES)
    state = PushdownState(*(x.detach() for x in state))
    readings, _ = advance(state, inputs[0][:, 4:], inputs[1][:, 4:], **SIZES)
    whole = pushdown_stack(*inputs, **SIZES)[:, 4:]
    torch.testing.assert_close(readings, whole, rtol=0, atol=1e-12)
    found = torch.autograd.grad(readings.sum(), inputs[:2])
    truth = torch.autograd.grad(whole.sum(), inputs[:2])
    assert not found[0][:, :4].any()
    torch.testing.assert_close([x[:, 4:] for x in found], [x[:, 4:] for x in truth], rtol=0, atol=1e-12)


def test_float32_inputs_keep_their_type(generator):
    inputs = [x.detach().float().requires_grad_() for x in draw(generator, 2, 5, 2, 3, 2)]
    readings = by_steps(*inputs, **SIZES)
    assert readings.dtype == torch.float32
    found = torch.autograd.grad(readings.sum(), inputs)
    assert {x.dtype for x in found} == {torch.float32}
    exact = [x.detach().double().requires_grad_() for x in inputs]
    truth = torch.autograd.grad(pushdown_stack(*exact, **SIZES).sum(), exact)
    torch.testing.assert_close(found, tuple(x.float() for x in truth), rtol=1e-5, atol=1e-6)
