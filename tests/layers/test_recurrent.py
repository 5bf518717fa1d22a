"""Recurrent layers: whole sequences, steps, padding."""

from __future__ import annotations

import pytest
import torch

from seqstruct.benchmarks.timing import kept
from seqstruct.layers.recurrent import CellState, RecurrentLayer, RecurrentStack, joined, separated
from tests.randomised import randomised

KINDS = pytest.mark.parametrize("kind", ["lstm", "gru"])


def layer(kind: str, generator: torch.Generator, inputs: int = 3, size: int = 4) -> RecurrentLayer:
    return randomised(RecurrentLayer(kind, inputs, size).double(), generator)


def draw(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


@KINDS
@pytest.mark.parametrize("length", [1, 2, 7])
def test_equal_to_torch_and_to_its_own_steps(kind, length, generator):
    own, x = layer(kind, generator), draw(generator, 5, length, 3)
    other = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind](3, 4, batch_first=True).double()
    hidden_bias = torch.zeros_like(own.bias) if kind == "lstm" else own.hidden_bias()
    values = {"weight_ih_l0": own.weight_ih, "weight_hh_l0": own.weight_hh, "bias_ih_l0": own.bias}
    other.load_state_dict({**values, "bias_hh_l0": hidden_bias})
    before = CellState(draw(generator, 5, 4), draw(generator, 5, 4 if kind == "lstm" else 0))
    expected, last = other(x, (before.hidden[None], before.cell[None]) if kind == "lstm" else before.hidden[None])
    found, state = own(x, before)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    if kind == "lstm":
        torch.testing.assert_close(state.cell, last[1][0], rtol=0, atol=1e-14)
    weights, leaves = torch.randn_like(expected), [x, *own.parameters()]
    wanted = torch.autograd.grad(found, leaves, weights, retain_graph=True)
    for extra in (0, 1, 3):
        step, stepped, now = own.stepper(extra), [], before
        for known, more in zip(own.known(x[..., : 3 - extra]).unbind(1), x[..., 3 - extra :].unbind(1), strict=True):
            now = step(known, more, now)
            stepped.append(now.hidden)
        stepped = torch.stack(stepped, 1)
        torch.testing.assert_close(stepped, expected, rtol=0, atol=1e-14)
        torch.testing.assert_close(torch.autograd.grad(stepped, leaves, weights), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kind", "widths"), [("lstm", 8), ("gru", 5)])
@pytest.mark.parametrize("late", [0, 2])
def test_what_each_step_keeps_for_the_backward_pass(kind, widths, late, generator):
    """Late inputs and state, then of an LSTM four gates, candidate, cell and its tanh; of a GRU two gates, candidate
    and what the state gives to that one.
    """
    own, sizes = layer(kind, generator, 3, 5), []
    for length in (3, 7):
        x = draw(generator, 2, length, 3)

        def steps(x: torch.Tensor = x) -> torch.Tensor:
            step, state = own.stepper(late), own.initial_state(2)
            for known, more in zip(own.known(x[..., : 3 - late]).unbind(1), x[..., 3 - late :].unbind(1), strict=True):
                state = step(known, more.clone(), state)
            return state.hidden

        sizes.append(round(1e6 * (kept(steps) - kept(lambda x=x: own.known(x[..., : 3 - late])))))
    assert sizes[1] - sizes[0] == 8 * (7 - 3) * 2 * (widths * 5 + late)


@KINDS
def test_padding_on_the_left_is_invisible(kind, generator):
    own, x = layer(kind, generator), draw(generator, 3, 6, 3)
    mask = torch.zeros(3, 6, dtype=torch.bool)
    mask[1, :2], mask[2] = True, True
    outputs, state = own(x, None, mask)
    alone, last = own(x[1:2, 2:])
    torch.testing.assert_close(outputs[1:2, 2:], alone, rtol=0, atol=1e-14)
    torch.testing.assert_close(state.cell[1:2], last.cell, rtol=0, atol=1e-14)
    assert torch.equal(outputs[2], torch.zeros(6, 4, dtype=torch.float64))
    assert torch.equal(outputs[1, :2], torch.zeros(2, 4, dtype=torch.float64))
    (gradient,) = torch.autograd.grad(outputs.sum(), x)
    assert not gradient[mask].any()


@KINDS
def test_no_step_at_all(kind, generator):
    own = layer(kind, generator)
    outputs, state = own(torch.zeros(2, 0, 3, dtype=torch.float64))
    assert outputs.shape == (2, 0, 4)
    assert not state.hidden.any()


def test_states_join_and_separate(generator):
    states = [CellState(draw(generator, 2, 3), draw(generator, 2, 3)) for _ in range(3)]
    for one, two in zip(states, separated(joined(states), 3), strict=True):
        assert torch.equal(one.hidden, two.hidden)
        assert torch.equal(one.cell, two.cell)
    (gru,) = separated(CellState(states[0].hidden, states[0].cell[:, :0]), 1)
    assert gru.cell.shape == (2, 0)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="a cell among lstm, gru, got 'rnn'"):
        RecurrentLayer("rnn", 3, 4)
    with pytest.raises(ValueError, match="sizes of 1 or more, got 3 and 0"):
        RecurrentLayer("gru", 3, 0)


@KINDS
def test_a_step_is_of_the_version_of_its_weights(kind, generator):
    own = layer(kind, generator)
    with torch.no_grad():
        version = own.version()
        assert own.version() == version
        for name, parameter in list(own.named_parameters()):
            if name == "bias":
                continue
            before = own.version()
            parameter.add_(1.0)
            assert own.version() != before, name
            before = own.version()
            setattr(own, name, torch.nn.Parameter(parameter.clone()))
            assert own.version() != before, name
        before = own.version()
    assert own.version() != before


@KINDS
def test_steps_under_autocast_are_exact(kind, generator):
    own, x = layer(kind, generator).float(), draw(generator, 2, 5, 3).float()
    state = own.initial_state(2)
    known, more = own.known(x[..., :2]), x[..., 2:]
    expected = own.stepper(1)(known[:, 0], more[:, 0], state)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = own.stepper(1)(known[:, 0], more[:, 0], state)
        outputs, _ = own(x)
    assert torch.equal(found.hidden, expected.hidden) and found.hidden.dtype == torch.float32
    torch.testing.assert_close(outputs.float(), own(x)[0], rtol=0, atol=0.05)


@KINDS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_steps_under_autocast_go_on_from_states_of_half_types(kind, dtype, generator):
    own = layer(kind, generator).float()
    known, more = own.known(draw(generator, 2, 1, 2).float())[:, 0], draw(generator, 2, 1).float()
    state = own.initial_state(2)._replace(hidden=draw(generator, 2, own.hidden_size).to(dtype))
    with torch.autocast("cpu", dtype):
        found = own.stepper(1)(known, more, state)
    expected = own.stepper(1)(known, more, state._replace(hidden=state.hidden.float()))
    assert torch.equal(found.hidden, expected.hidden) and found.hidden.dtype == torch.float32


def test_a_stack_names_what_its_layers_give_beside(generator):
    class Counting(torch.nn.Module):
        def initial_state(self, batch_size):
            return torch.zeros(batch_size)

        def forward(self, inputs, state):
            return inputs + 1, state + inputs.size(1), {"steps": inputs.size(1)}

    stack = RecurrentStack([layer("gru", generator, 4), Counting(), Counting()]).double()
    hidden, state, extra = stack(draw(generator, 2, 5, 4), stack.initial_state(2))
    assert extra == {"1.steps": 5, "2.steps": 5}
    torch.testing.assert_close(hidden[:, -1], state[0].hidden + 2)
    assert state[1].tolist() == state[2].tolist() == [5.0, 5.0]
    with pytest.raises(ValueError, match="hidden: expected 0 or more and below 1, got 1"):
        RecurrentStack([], hidden_dropout=1.0)
