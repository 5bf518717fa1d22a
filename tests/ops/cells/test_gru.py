"""The step of a gated recurrent unit against torch's own."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.cells import gru_step
from tests.ops.graphs import assert_same
from tests.randomised import draw


@pytest.mark.parametrize(("batch", "length"), [(5, 7), (1, 1), (3, 13)])
def test_equal_to_torch(batch, length, generator):
    shapes = (batch, length, 4), (batch, 3), (9, 4), (9, 3), (9,), (9,)
    inputs, hidden, *parameters = (draw(generator, *shape).requires_grad_() for shape in shapes)
    expected = torch.gru(inputs, hidden[None], parameters, True, 1, 0.0, False, False, True)[0]
    weight_ih, weight_hh, bias_ih, bias_hh = parameters
    stepped, state = [], hidden
    for step in torch.nn.functional.linear(inputs, weight_ih, bias_ih).unbind(1):
        state = gru_step(step, torch.addmm(bias_hh, state, weight_hh.t()), state)
        stepped.append(state)
    assert_same(torch.stack(stepped, 1), expected, [inputs, hidden, *parameters])


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_gradcheck(batch, generator):
    assert torch.autograd.gradcheck(gru_step, [draw(generator, batch, n).requires_grad_() for n in (6, 6, 2)])


def test_an_update_gate_of_one_keeps_the_state(generator):
    gates, hidden = draw(generator, 2, 6), draw(generator, 2, 2)
    gates[:, 2:4] = 1e4
    assert torch.equal(gru_step(gates, draw(generator, 2, 6), hidden), hidden)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"gates B 3h and a state B h, got \(2, 6\), \(2, 6\) and \(2, 3\)"):
        gru_step(torch.zeros(2, 6), torch.zeros(2, 6), torch.zeros(2, 3))
