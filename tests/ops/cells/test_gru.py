"""Gated recurrent units against torch's own."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.cells.gru import GRUSteps, gru_sequence, gru_step
from tests.ops.graphs import assert_same


def draw(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize(("batch", "length"), [(5, 7), (1, 1), (3, 13)])
def test_equal_to_torch(batch, length, generator):
    inputs, hidden = draw(generator, batch, length, 4), draw(generator, batch, 3)
    parameters = [draw(generator, *shape) for shape in ((9, 4), (9, 3), (9,), (9,))]
    expected = torch.gru(inputs, hidden[None], parameters, True, 1, 0.0, False, False, True)[0]
    weight_ih, weight_hh, bias_ih, bias_hh = parameters
    gates = torch.nn.functional.linear(inputs, weight_ih, bias_ih)
    found = gru_sequence(gates, hidden, weight_hh, bias_hh)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    stepped, state = [], hidden
    for step in gates.unbind(1):
        state = gru_step(step, torch.addmm(bias_hh, state, weight_hh.t()), state)
        stepped.append(state)
    torch.testing.assert_close(torch.stack(stepped, 1), expected, rtol=0, atol=1e-14)
    weights, leaves = torch.randn_like(expected), [inputs, hidden, *parameters]
    wanted = torch.autograd.grad(expected, leaves, weights, retain_graph=True)
    for result in (found, torch.stack(stepped, 1)):
        for own, other in zip(torch.autograd.grad(result, leaves, weights, retain_graph=True), wanted, strict=True):
            torch.testing.assert_close(own, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("batch", "length"), [(0, 3), (2, 0), (1, 1), (3, 4)])
def test_gradcheck(batch, length, generator):
    inputs = [draw(generator, *shape) for shape in ((batch, length, 6), (batch, 2), (6, 2), (6,))]
    assert torch.autograd.gradcheck(gru_sequence, inputs)
    steps = [draw(generator, batch, n) for n in (6, 6, 2)]
    assert torch.autograd.gradcheck(gru_step, steps)


def test_an_update_gate_of_one_keeps_the_state(generator):
    gates, hidden = draw(generator, 2, 5, 6), draw(generator, 2, 2)
    with torch.no_grad():
        gates[..., 2:4] = 1e4
    states = gru_sequence(gates, hidden, draw(generator, 6, 2), draw(generator, 6))
    assert torch.equal(states, hidden[:, None].expand(-1, 5, -1))


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"gates B 3h and a state B h, got \(2, 6\), \(2, 6\) and \(2, 3\)"):
        gru_step(torch.zeros(2, 6), torch.zeros(2, 6), torch.zeros(2, 3))
    with pytest.raises(ValueError, match="weight 3h h and bias 3h"):
        gru_sequence(torch.zeros(2, 4, 6), torch.zeros(2, 2), torch.zeros(6, 3), torch.zeros(6))


def leaves_of(generator: torch.Generator, batch: int, length: int) -> list[torch.Tensor]:
    """Gates of the input, three parameters, what enters late at each step, and the state before the first one."""
    shapes = (batch, length, 9), (2, 9), (9, 3), (9,), (length, batch, 2), (batch, 3)
    return [draw(generator, *shape) for shape in shapes]


def by_steps(taped: bool, gates, of_rest, weight, bias, rest, hidden):
    """States of a network in which the state also joins what enters late at the next step."""
    steps, found = GRUSteps(gates, of_rest, weight, bias) if taped else None, []
    for t in range(gates.size(1)):
        late = rest[t] + hidden[:, :2].tanh()
        if taped:
            hidden = steps(t, late, hidden)
        else:
            recurrent = torch.addmm(bias, hidden, weight.t())
            hidden = gru_step(torch.addmm(gates[:, t], late, of_rest), recurrent, hidden)
        found.append(hidden)
    return torch.stack(found)


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (3, 4), (0, 2)])
def test_taped_steps(batch, length, generator):
    leaves = leaves_of(generator, batch, length)
    found, expected = (by_steps(taped, *leaves) for taped in (True, False))
    assert_same(found, expected, leaves)
    with torch.no_grad():
        torch.testing.assert_close(by_steps(True, *leaves), expected, rtol=0, atol=1e-14)


def test_taped_steps_gradcheck(generator):
    assert torch.autograd.gradcheck(lambda *leaves: by_steps(True, *leaves), leaves_of(generator, 2, 3))


def test_steps_that_were_not_made_add_nothing(generator):
    *parameters, rest, hidden = leaves_of(generator, 2, 3)
    after = GRUSteps(*parameters)(0, rest[0], hidden)
    of_gates, *others = torch.autograd.grad(after.sum(), parameters)
    assert of_gates[:, 0].abs().sum() > 0 and not of_gates[:, 1:].any()
    assert all(other.isfinite().all() for other in others)


def test_a_pass_that_leaves_parameters_out_leaves_nothing_behind(generator):
    *parameters, rest, hidden = leaves_of(generator, 2, 3)
    steps = GRUSteps(*parameters)
    first = steps(0, rest[0], hidden)
    second = steps(1, rest[1], first)
    torch.autograd.grad(second.sum(), hidden, retain_graph=True)
    found = torch.autograd.grad(first.sum(), parameters)
    expected = torch.autograd.grad(GRUSteps(*parameters)(0, rest[0], hidden).sum(), parameters)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


def test_taped_steps_are_checked():
    with pytest.raises(ValueError, match="expected gates B T 3h, e 3h, weight 3h h and bias 3h"):
        GRUSteps(torch.zeros(2, 3, 6), torch.zeros(1, 6), torch.zeros(6, 3), torch.zeros(6))
    steps = GRUSteps(torch.zeros(2, 3, 6), torch.zeros(1, 6), torch.zeros(6, 2), torch.zeros(6))
    with pytest.raises(ValueError, match="expected step 0, got step 1"):
        steps(1, torch.zeros(2, 1), torch.zeros(2, 2))
