"""The step of an LSTM against torch's own."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.lstm import lstm_step


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
