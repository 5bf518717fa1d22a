"""The step of an LSTM against torch's own."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.cells.lstm import LSTMSteps, lstm_step
from tests.ops.graphs import assert_same


def test_equal_to_torch(generator):
    gates, cell = (torch.randn(5, n, generator=generator, dtype=torch.float64) for n in (28, 7))
    hidden = torch.zeros(5, 7, dtype=torch.float64)
    weight = torch.eye(28, dtype=torch.float64)
    expected = torch.lstm_cell(gates, (hidden, cell), weight, torch.zeros(28, 7, dtype=torch.float64))
    torch.testing.assert_close(lstm_step(gates, cell), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_gradcheck(generator, batch):
    inputs = [torch.randn(batch, n, generator=generator, dtype=torch.float64).requires_grad_() for n in (8, 2)]
    assert torch.autograd.gradcheck(lstm_step, inputs)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"expected gates B 4h and cell B h, got \(2, 8\) and \(2, 3\)"):
        lstm_step(torch.zeros(2, 8), torch.zeros(2, 3))


def leaves_of(generator: torch.Generator, batch: int, length: int) -> list[torch.Tensor]:
    """Gates, weight, what enters late at each step, and the state before the first one."""
    shapes = (batch, length, 12), (5, 12), (length, batch, 2), (batch, 3), (batch, 3)
    return [torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


def by_steps(taped: bool, gates, weight, rest, hidden, cell):
    """Hidden states and cells of a network in which the hidden state also joins what enters late at the next step."""
    steps, found = LSTMSteps(gates, weight) if taped else None, []
    for t in range(gates.size(1)):
        late = rest[t] + hidden[:, :2].tanh()
        if taped:
            hidden, cell = steps(t, late, hidden, cell)
        else:
            hidden, cell = lstm_step(torch.addmm(gates[:, t], torch.cat([late, hidden], 1), weight), cell)
        found += [hidden, cell]
    return torch.stack(found)


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (3, 4), (0, 2)])
def test_taped_steps(generator, batch, length):
    leaves = leaves_of(generator, batch, length)
    found, expected = (by_steps(taped, *leaves) for taped in (True, False))
    assert_same(found, expected, leaves)
    with torch.no_grad():
        torch.testing.assert_close(by_steps(True, *leaves), expected, rtol=0, atol=1e-14)


def test_taped_steps_gradcheck(generator):
    assert torch.autograd.gradcheck(lambda *leaves: by_steps(True, *leaves), leaves_of(generator, 2, 3))


def test_steps_that_were_not_made_add_nothing(generator):
    gates, weight, rest, hidden, cell = leaves_of(generator, 2, 3)
    hidden, _ = LSTMSteps(gates, weight)(0, rest[0], hidden, cell)
    of_gates, of_weight = torch.autograd.grad(hidden.sum(), [gates, weight])
    assert of_gates[:, 0].abs().sum() > 0 and not of_gates[:, 1:].any() and of_weight.isfinite().all()


def test_a_pass_that_leaves_parameters_out_leaves_nothing_behind(generator):
    gates, weight, rest, hidden, cell = leaves_of(generator, 2, 3)
    steps = LSTMSteps(gates, weight)
    first, after = steps(0, rest[0], hidden, cell)
    second, _ = steps(1, rest[1], first, after)
    torch.autograd.grad(second.sum(), hidden, retain_graph=True)
    found = torch.autograd.grad(first.sum(), [gates, weight])
    expected = torch.autograd.grad(LSTMSteps(gates, weight)(0, rest[0], hidden, cell)[0].sum(), [gates, weight])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


def test_taped_steps_are_checked():
    with pytest.raises(ValueError, match="expected gates B T 4h and weight K 4h"):
        LSTMSteps(torch.zeros(2, 3, 8), torch.zeros(3, 4))
    with pytest.raises(ValueError, match="expected step 0, got step 1"):
        LSTMSteps(torch.zeros(2, 3, 8), torch.zeros(3, 8))(1, torch.zeros(2, 1), torch.zeros(2, 2), torch.zeros(2, 2))
