"""One step of a long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates), for networks whose input
depends on the step before.  Gates stand in the order of torch: input, forget, cell, output.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def lstm_step(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden state B h and cell B h after one step.

    gates: B 4h, before their nonlinearities; cell: B h, before the step.  First derivatives only.
    Raises ValueError if the shapes do not fit.
    """
    if cell.dim() != 2 or gates.shape != (cell.size(0), 4 * cell.size(1)):
        raise ValueError(f"expected gates B 4h and cell B h, got {tuple(gates.shape)} and {tuple(cell.shape)}")
    return _LSTMStep.apply(gates, cell)


class _LSTMStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        active, size = gates.sigmoid(), cell.size(1)
        torch.tanh(gates[:, 2 * size : 3 * size], out=active[:, 2 * size : 3 * size])
        enter, keep, new, show = active.split(size, 1)
        after = torch.addcmul(enter * new, keep, cell)
        bounded = after.tanh()
        ctx.save_for_backward(active, cell, bounded)
        return show * bounded, after

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_hidden: Tensor, grad_cell: Tensor):
        active, cell, bounded = ctx.saved_tensors
        enter, keep, new, show = active.split(cell.size(1), 1)
        into = torch.addcmul(grad_cell, grad_hidden * show, 1 - bounded.square())
        slopes = active * (1 - active)
        slopes[:, 2 * cell.size(1) : 3 * cell.size(1)] = 1 - new.square()
        grad_gates = torch.cat([into * new, into * cell, into * enter, grad_hidden * bounded], 1)
        return grad_gates.mul_(slopes), into * keep
