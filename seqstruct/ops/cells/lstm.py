"""Long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates): one step, and a sequence.

    c_t = sigmoid(a_i) tanh(a_c) + sigmoid(a_f) c_{t-1};  h_t = sigmoid(a_o) tanh(c_t)

The gates a stand in the order of torch: input, forget, cell, output.
"""

from __future__ import annotations

import torch
from torch import Tensor


def lstm_step(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden state B h and cell B h after one step.

    gates: B 4h, before their nonlinearities; cell: B h, before the step.
    Raises ValueError if the shapes do not fit.
    """
    size = cell.size(-1)
    if cell.dim() != 2 or gates.shape != (cell.size(0), 4 * size):
        raise ValueError(f"expected gates B 4h and cell B h, got {tuple(gates.shape)} and {tuple(cell.shape)}")
    enter, keep, _, show = gates.sigmoid().split(size, 1)  # one pass over all, though a quarter is not asked for
    after = torch.addcmul(enter * gates[:, 2 * size : 3 * size].tanh(), keep, cell)
    return show * after.tanh(), after


def lstm_sequence(
    inputs: Tensor, hidden: Tensor, cell: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states B T h, and hidden state and cell B h after the last step, by torch's fused pass.

    inputs: B T C; hidden, cell: B h, before the first step; weight_ih: 4h C; weight_hh: 4h h; bias: 4h.
    Raises ValueError if the shapes do not fit, which torch's own pass takes for others.
    """
    given = [tuple(x.shape) for x in (inputs, hidden, cell, weight_ih, weight_hh, bias)]
    (batch, size), columns = cell.shape, weight_ih.size(1)
    state, rows = (batch, size), 4 * size
    if given != [(batch, inputs.size(1), columns), state, state, (rows, columns), (rows, size), (rows,)]:
        raise ValueError(f"expected inputs B T C, hidden and cell B h, weights 4h C and 4h h, and bias 4h, got {given}")
    if not inputs.size(1):
        return inputs.new_zeros(len(inputs), 0, hidden.size(1)), hidden, cell
    parameters = [weight_ih, weight_hh, bias, torch.zeros_like(bias)]
    hiddens, hidden, cell = fused_lstm(inputs, hidden[None].contiguous(), cell[None].contiguous(), *parameters)
    return hiddens, hidden[0], cell[0]


def fused_lstm(inputs: Tensor, hidden: Tensor, cell: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """torch's pass of one layer: hidden states B T h, and hidden state and cell 1 B h after the last step.

    inputs: B T C, T 1 or more; hidden, cell: 1 B h; parameters: weights 4h C and 4h h, and two biases, 4h each.
    Under autocast on a CPU that has no pass in its type, where torch's fails, it is that of float32.
    """
    if inputs.device.type == "cpu" and torch.is_autocast_enabled("cpu") and not _has(torch.get_autocast_dtype("cpu")):
        with torch.autocast("cpu", enabled=False):
            return fused_lstm(*(x.float() for x in (inputs, hidden, cell, *parameters)))
    training = torch.is_grad_enabled()  # cuDNN has a derivative only of what is said to be a training's
    return torch.lstm(inputs, (hidden, cell), parameters, True, 1, 0.0, training, False, True)


def _has(dtype: torch.dtype) -> bool:
    """oneDNN, by which torch's fused pass is, has bfloat16 on some CPUs and float16 on none; torch's own has both."""
    if not torch.backends.mkldnn.is_available():
        return True
    return dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
