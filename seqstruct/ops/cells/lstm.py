"""Steps of a long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates), for networks whose input
depends on the step before.  Gates stand in the order of torch: input, forget, cell, output.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.deferred import Gathering, Tape
from seqstruct.ops.first_derivatives import first_derivatives_only


def lstm_step(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden state B h and cell B h after one step.

    gates: B 4h, before their nonlinearities; cell: B h, before the step.  First derivatives only.
    Raises ValueError if the shapes do not fit.
    """
    if cell.dim() != 2 or gates.shape != (cell.size(0), 4 * cell.size(1)):
        raise ValueError(f"expected gates B 4h and cell B h, got {tuple(gates.shape)} and {tuple(cell.shape)}")
    return _LSTMStep.apply(gates, cell)


class LSTMSteps:
    """T steps of an LSTM, one after another, whose inputs are known in part beforehand.

    gates: B T 4h, what that part and the biases add to the gates; weight: (e + h) 4h, from the rest of the input, of
    size e, then from the hidden state.  Computed in the wider of their types.  Backward, what follows from values of
    the forward pass is computed for all steps at once, and the weight's gradient is one product.  First derivatives
    only.
    Raises ValueError if the shapes do not fit.
    """

    def __init__(self, gates: Tensor, weight: Tensor):
        if gates.dim() != 3 or weight.dim() != 2 or gates.size(2) != weight.size(1) or gates.size(2) % 4:
            raise ValueError(f"expected gates B T 4h and weight K 4h, got {tuple(gates.shape)}, {tuple(weight.shape)}")
        dtype = torch.promote_types(gates.dtype, weight.dtype)
        self.tape = _Tape(gates.detach().to(dtype), weight.detach().to(dtype))
        self.token = Gathering.apply(self.tape, gates, weight) if torch.is_grad_enabled() else None

    def __call__(self, t: int, rest: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden state B h and cell B h after step t, from rest B e and the two before it; t = 0, 1, ... in order.

        Raises ValueError out of order.
        """
        tape = self.tape
        if t != tape.made:
            raise ValueError(f"expected step {tape.made}, got step {t}")
        tape.made += 1
        with torch.autocast(rest.device.type, enabled=False):
            if self.token is not None:
                return _TapedStep.apply(self.token, rest, hidden, cell, tape, t)
            before = torch.cat([rest, hidden], 1).to(tape.weight.dtype)
            return lstm_step(torch.addmm(tape.gates[:, t], before, tape.weight), cell)


class _LSTMStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        active = torch.empty_like(gates)
        hidden, after, bounded = _advance(gates, cell, active)
        ctx.save_for_backward(active, cell, bounded)
        return hidden, after

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad_hidden: Tensor, grad_cell: Tensor):
        active, cell, bounded = ctx.saved_tensors
        slopes, into_cell = lstm_slopes(active, cell, bounded)
        grad_gates = torch.empty_like(active)
        return grad_gates, _retreat(grad_hidden, grad_cell, slopes, into_cell, active, grad_gates)


def _advance(gates: Tensor, cell: Tensor, active: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden state and cell after a step, and tanh of the cell; the gates after their nonlinearities go to `active`."""
    size = cell.size(1)
    torch.sigmoid(gates, out=active)
    torch.tanh(gates[:, 2 * size : 3 * size], out=active[:, 2 * size : 3 * size])
    enter, keep, new, show = active.split(size, 1)
    after = torch.addcmul(enter * new, keep, cell)
    bounded = after.tanh()
    return show * bounded, after, bounded


def lstm_slopes(active: Tensor, cell: Tensor, bounded: Tensor) -> tuple[Tensor, Tensor]:
    """What gradients of a step's results are multiplied by, for any number of steps at once.

    active: ... 4h, gates after their nonlinearities; cell: ... h, before the step; bounded: ... h, tanh of the next.
    First ... 4h: times the gradient of the cell after, for the output gate that of the hidden state, it is the gates'.
    Then ... h: times the gradient of the hidden state it is what goes into that of the cell after.
    """
    size = cell.size(-1)
    enter, _, new, show = active.split(size, -1)
    slopes = active * (1 - active)
    slopes[..., 2 * size : 3 * size] = 1 - new.square()
    return slopes.mul_(torch.cat([new, cell, enter, bounded], -1)), show * (1 - bounded.square())


def _retreat(
    grad_hidden: Tensor, grad_cell: Tensor, slopes: Tensor, into_cell: Tensor, active: Tensor, grad_gates: Tensor
) -> Tensor:
    """The gradient of the cell before a step; that of the gates is written."""
    size = into_cell.size(1)
    total = torch.addcmul(grad_cell, grad_hidden, into_cell)
    by_gate, written = (x.view(len(x), 4, size) for x in (slopes, grad_gates))
    torch.mul(total.unsqueeze(1), by_gate[:, :3], out=written[:, :3])
    torch.mul(grad_hidden, by_gate[:, 3], out=written[:, 3])
    return total * active[:, size : 2 * size]


class _Tape(Tape):
    """Values of the forward pass, time first, and gradients of gates."""

    def __init__(self, gates: Tensor, weight: Tensor):
        (B, T, width), K = gates.shape, weight.size(0)
        self.gates, self.weight, self.made = gates, weight, 0
        if torch.is_grad_enabled():
            self.before, self.active = gates.new_empty(T, B, K), gates.new_empty(T, B, width)
            self.bounded, self.cells = gates.new_empty(T, B, width // 4), gates.new_empty(T, B, width // 4)

    def begin(self) -> None:
        """Make ready for the backward pass of all steps that were made."""
        made = slice(self.made)
        self.slopes, self.into_cell = lstm_slopes(self.active[made], self.cells[made], self.bounded[made])
        self.grad_gates = torch.zeros_like(self.active)

    def gradients(self) -> tuple[Tensor, Tensor]:
        grad = self.grad_gates[: self.made].flatten(0, 1)
        return self.grad_gates.transpose(0, 1), self.before[: self.made].flatten(0, 1).t() @ grad


class _TapedStep(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx, token: Tensor, rest: Tensor, hidden: Tensor, cell: Tensor, tape: _Tape, t: int
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(token)
        ctx.tape, ctx.t, ctx.size = tape, t, rest.size(1)
        before = tape.before[t]
        before[:, : ctx.size], before[:, ctx.size :], tape.cells[t] = rest, hidden, cell
        total = torch.addmm(tape.gates[:, t], before, tape.weight)
        hidden, after, tape.bounded[t] = _advance(total, cell, tape.active[t])
        return hidden, after

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad_hidden: Tensor, grad_cell: Tensor):
        tape, t = ctx.tape, ctx.t
        tape.enter()
        steps = tape.slopes[t], tape.into_cell[t], tape.active[t], tape.grad_gates[t]
        grad_before_cell = _retreat(grad_hidden, grad_cell, *steps)
        of_rest, of_hidden = torch.mm(tape.grad_gates[t], tape.weight.t()).tensor_split([ctx.size], 1)
        return *ctx.saved_tensors, of_rest, of_hidden, grad_before_cell, None, None
