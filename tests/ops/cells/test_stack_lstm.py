"""An LSTM with a stack, all steps at once: derivatives, and equality with the same network step by step."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from seqstruct.ops.cells import lstm_step, stack_lstm
from seqstruct.ops.pushdown import (
    PushdownTape,
    pushdown_initial,
    pushdown_reading,
    pushdown_step,
    reading_order,
    step_order,
    transition_count,
)
from seqstruct.ops.superposition import SuperpositionTape, control_order, superposition_stack_step

HIDDEN, SIZE = 3, 2
CHUNK = PushdownTape.CHUNK


def draw(generator, T, B, reading, controls, spread=0.5):
    """gates, hidden, cell, recurrent, controls, controls_bias."""
    shapes = [(T, B, 4 * HIDDEN), (B, HIDDEN), (B, HIDDEN), (reading + HIDDEN, 4 * HIDDEN), (HIDDEN, controls),
              (controls,)]
    return [(spread * torch.randn(x, generator=generator, dtype=torch.float64)).requires_grad_() for x in shapes]


def nondeterministic(generator, T, B, states, symbols, sigmoid=True, spread=0.5):
    inputs = draw(generator, T, B, states * symbols * SIZE, transition_count(states, symbols) + SIZE, spread)
    bottom = torch.rand(B, SIZE, generator=generator, dtype=torch.float64).requires_grad_()
    return [*inputs, bottom], partial(PushdownTape, states=states, symbols=symbols, sigmoid=sigmoid)


def superposition(generator, T, B, height=0, sigmoid=False):
    inputs = draw(generator, T, B, SIZE, 3 + SIZE)
    start = torch.randn(B, height, SIZE, generator=generator, dtype=torch.float64).requires_grad_()
    return [*inputs, start], partial(SuperpositionTape, sigmoid=sigmoid)


def nondeterministic_steps(gates, hidden, cell, recurrent, controls, bias, bottom, *, states, symbols, sigmoid):
    """The same network by the step form, its controls and readings in the tape's arrangement."""
    count = transition_count(states, symbols)
    order, readings = step_order(states, symbols, SIZE), reading_order(states, symbols, SIZE)
    stack = pushdown_initial(bottom[0], len(bottom), states=states, symbols=symbols)
    hiddens = []
    for t, given in enumerate(gates):
        known = torch.cat([pushdown_reading(stack)[:, readings], hidden], 1)
        hidden, cell = lstm_step(torch.addmm(given, known, recurrent), cell)
        hiddens.append(hidden)
        if t + 1 < len(gates):
            control = torch.addmm(bias, hidden, controls)[:, order.argsort()]
            pushed = control[:, count:]
            pushed = pushed.sigmoid() if sigmoid else pushed.exp()
            stack = pushdown_step(stack, control[:, :count], pushed, states=states, symbols=symbols)
    return torch.stack(hiddens)


def superposition_steps(gates, hidden, cell, recurrent, controls, bias, stack, *, sigmoid):
    order = control_order(SIZE)
    stack = torch.cat([stack, stack.new_zeros(len(stack), 1, SIZE)], 1)
    hiddens = []
    for given in gates:
        hidden, cell = lstm_step(torch.addmm(given, torch.cat([stack[:, 0], hidden], 1), recurrent), cell)
        hiddens.append(hidden)
        control = torch.addmm(bias, hidden, controls)[:, order.argsort()]
        pushed = control[:, 3:].sigmoid() if sigmoid else control[:, 3:]
        stack = superposition_stack_step(stack, control[:, :3].softmax(1), pushed)
    return torch.stack(hiddens)


def compare(found, expected, inputs, generator):
    weights = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    grads, truth = (torch.autograd.grad((x * weights).sum(), inputs, allow_unused=True) for x in (found, expected))
    for grad, true in zip(grads, truth, strict=True):
        if grad is None or true is None:
            assert not any(x is not None and x.any() for x in (grad, true))
        else:
            torch.testing.assert_close(grad, true, rtol=0, atol=1e-11)


@pytest.mark.parametrize("T", [1, 2, 3, 5])
@pytest.mark.parametrize("sigmoid", [True, False])
def test_gradcheck(generator, T, sigmoid):
    cases = nondeterministic(generator, T, 2, 2, 2, sigmoid), superposition(generator, T, 2, T - 1, sigmoid)
    for inputs, tape in cases:
        assert torch.autograd.gradcheck(lambda *inputs, tape=tape: stack_lstm(*inputs, tape)[0], inputs)


@pytest.mark.parametrize(
    ("T", "states", "symbols"), [(2, 1, 1), (13, 3, 2), (CHUNK, 2, 3), (CHUNK + 1, 2, 2), (2 * CHUNK + 3, 1, 3)]
)
def test_nondeterministic_equals_step_by_step(generator, T, states, symbols):
    """The tape takes T - 1 steps, so that these lengths stand on either side of the chunks' limits."""
    for length in (T, T + 1):
        inputs, tape = nondeterministic(generator, length, 1, states, symbols, spread=1.5)
        found, trusted = stack_lstm(*inputs, tape)
        assert trusted.all()
        compare(found, nondeterministic_steps(*inputs, **tape.keywords), inputs, generator)


@pytest.mark.parametrize(("T", "height"), [(1, 0), (2, 3), (13, 0), (7, 2), (5, 20)])
def test_superposition_equals_step_by_step(generator, T, height):
    inputs, tape = superposition(generator, T, 5, height, sigmoid=bool(T % 2))
    compare(stack_lstm(*inputs, tape)[0], superposition_steps(*inputs, **tape.keywords), inputs, generator)


def test_a_second_backward_pass_is_the_first_one_again(generator):
    cases = nondeterministic(generator, CHUNK + 4, 2, 2, 2), superposition(generator, 9, 2)
    for inputs, tape in cases:
        hiddens = stack_lstm(*inputs, tape)[0]
        first, second = (torch.autograd.grad(hiddens.square().sum(), inputs, retain_graph=True) for _ in range(2))
        assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))


def lose_all_weight(generator, tape):
    """Which rows can be trusted; biases of exp(400) draw all weight to a state that the last step leaves by as much."""
    inputs, _ = nondeterministic(generator, 7, 2, 2, 1)
    gates, hidden, cell, recurrent, controls, _, bottom = (x.detach() for x in inputs)
    order = step_order(2, 1, SIZE).argsort()
    table = torch.zeros(2, 2 + 2 + 2, dtype=torch.float64)
    table[:, [0, 2, 4]] = -800.0  # every way to state 0 is almost closed
    table[0, [1, 3]] = -1600.0  # and from state 0 to state 1 too
    bias = torch.cat([table.flatten(), torch.zeros(SIZE, dtype=torch.float64)])[order.argsort()]
    tape = partial(tape, states=2, symbols=1, sigmoid=True)
    return stack_lstm(gates, hidden, cell, 0.2 * recurrent, torch.zeros_like(controls), bias, bottom, tape)[1]


def test_rows_out_of_range_are_told(generator):
    assert not lose_all_weight(generator, PushdownTape).any()


def test_types_and_shapes(generator):
    inputs, tape = nondeterministic(generator, 4, 2, 2, 1)
    exact = stack_lstm(*inputs, tape)[0]
    single = [x.detach().float().requires_grad_() for x in inputs]
    found = stack_lstm(*single, tape)[0]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-6)
    grads = torch.autograd.grad(found.sum(), single)
    truth = torch.autograd.grad(exact.sum(), inputs)
    torch.testing.assert_close([x.double() for x in grads], list(truth), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="expected gates T B 4h"):
        stack_lstm(inputs[0][..., 1:], *inputs[1:], tape)
    with pytest.raises(ValueError, match="expected gates T B 4h"):
        stack_lstm(inputs[0][:0], *inputs[1:], tape)
