"""The step of an LSTM against torch's own, and a sequence against its steps."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.cells import lstm, lstm_sequence, lstm_step
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


def leaves_of(generator, batch, length):
    shapes = (batch, length, 4), (batch, 3), (batch, 3), (12, 4), (12, 3), (12,)
    return [torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (3, 7), (0, 2), (2, 0)])
def test_a_sequence_is_its_steps(generator, batch, length):
    leaves = inputs, hidden, cell, weight_ih, weight_hh, bias = leaves_of(generator, batch, length)
    hiddens, *last = lstm_sequence(*leaves)
    stepped = [hidden.new_zeros(batch, 0, 3)]
    for x in inputs.unbind(1):
        hidden, cell = lstm_step(x @ weight_ih.t() + hidden @ weight_hh.t() + bias, cell)
        stepped.append(hidden[:, None])
    expected = torch.cat(stepped, 1)
    torch.testing.assert_close(last, [hidden, cell], rtol=0, atol=1e-14)
    if length and batch:
        assert_same(hiddens, expected, leaves)
    assert hiddens.shape == (batch, length, 3)


def test_other_shapes_are_refused(generator):
    """torch's pass reads beyond the weights where inputs are wider than they."""
    leaves = leaves_of(generator, 3, 7)
    for number, x in enumerate(leaves):
        for axis in range(x.dim()):
            wrong = [*leaves]
            wrong[number] = torch.cat([x, x.narrow(axis, 0, 1)], axis)
            if (number, axis) != (0, 1):
                with pytest.raises(ValueError, match="expected inputs B T C, hidden and cell B h, weights"):
                    lstm_sequence(*wrong)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_where_autocast_has_no_pass_it_is_that_of_float32(generator, monkeypatch, dtype):
    leaves = [x.detach().float() for x in leaves_of(generator, 3, 7)]
    expected = lstm_sequence(*leaves)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)  # without it, float16 is torch's own
    if dtype == torch.bfloat16:
        monkeypatch.setattr(lstm, "_has", lambda dtype: False)
    with torch.autocast("cpu", dtype):
        found = lstm_sequence(*leaves)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
