"""An LSTM with a stack over a whole sequence, in one forward and one backward pass (DuSell and Chiang 2024, app. D.1).

At each step the LSTM's gates depend on the input, on the last hidden state and on the last reading of the stack; a
linear layer of the new hidden state controls the stack's next step.  Forward and backward passes are loops over steps
in which nothing is computed that can wait until the end: gradients of weight matrices are single products over all
steps, and what depends on values of the forward pass alone is computed for all steps at once.  Gates stand in the order
of torch: input, forget, cell, output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only


class StackTape(Protocol):
    """A stack that remembers its steps; they are counted from 0."""

    reading_size: int

    def first_reading(self, reading: Tensor) -> None:
        """Write the reading before the first step into `reading`, B R."""

    def step(self, controls: Tensor, reading: Tensor) -> None:
        """Take the next step; write the reading after it.  controls: B n."""

    def in_range(self) -> Tensor | None:
        """B bool, the rows of the batch whose numbers can be trusted; None for all."""

    def begin_backward(self) -> None:
        """Make ready for a backward pass over all steps."""

    def step_backward(self, grad_reading: Tensor, grad_controls: Tensor) -> None:
        """Take the last step back that has not been yet: from B R write B n."""

    def start_gradient(self, grad_reading: Tensor) -> Tensor | None:
        """The gradient of what the stack started from, if that has one; grad_reading: B R, of the first reading."""


def stack_lstm(
    gates: Tensor,
    hidden: Tensor,
    cell: Tensor,
    recurrent: Tensor,
    controls: Tensor,
    controls_bias: Tensor,
    start: Tensor,
    tape: Callable[[Tensor, int], StackTape],
) -> tuple[Tensor, Tensor | None]:
    """Hidden states after each step.

    gates: T B 4h, what the inputs contribute to the gates, bias included, T 1 or more; hidden, cell: B h, before the
    first step; recurrent: R+h 4h, from the reading, then the hidden state, to the gates; controls: h n and
    controls_bias: n, from the hidden state to the stack's controls; start: what the stack starts from, batch first;
    tape: makes the stack from `start` (without gradient) and the number of its steps, T - 1.
    Returns T B h, in the common data type of the arguments, float32 at least, and which rows of the batch can be
    trusted, B bool, or None for all.  First derivatives only.
    Raises ValueError if the shapes do not fit.
    """
    if gates.dim() != 3 or gates.size(0) == 0 or gates.shape[1:] != (cell.size(0), 4 * cell.size(1)):
        raise ValueError(f"expected gates T B 4h and cell B h, got {tuple(gates.shape)} and {tuple(cell.shape)}")
    inputs = [gates, hidden, cell, recurrent, controls, controls_bias, start]
    dtype = torch.float32
    for x in inputs:
        dtype = torch.promote_types(dtype, x.dtype)
    with torch.autocast(gates.device.type, enabled=False):
        return _StackLSTM.apply(*(x.to(dtype) for x in inputs), tape)


class _StackLSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx,
        gates: Tensor,
        hidden: Tensor,
        cell: Tensor,
        recurrent: Tensor,
        controls: Tensor,
        controls_bias: Tensor,
        start: Tensor,
        tape_of: Callable[[Tensor, int], StackTape],
    ) -> tuple[Tensor, Tensor | None]:
        T, B, size = *gates.shape[:2], cell.size(1)
        tape = tape_of(start, T - 1)
        read = tape.reading_size
        before = gates.new_empty(T + 1, B, read + size)  # [reading, hidden state] before each step
        active, cells, bounded = (gates.new_empty(n, B, k * size) for n, k in ((T, 4), (T + 1, 1), (T, 1)))
        readings, hiddens = (x.unbind(0) for x in before.split([read, size], 2))
        enter, keep, new, show = (x.unbind(0) for x in active.split(size, 2))
        given, known, opened, bound = (x.unbind(0) for x in (gates, before, active, bounded))
        cell_at = cells.unbind(0)
        hiddens[0].copy_(hidden)
        cell_at[0].copy_(cell)
        tape.first_reading(readings[0])
        for t in range(T):
            total = torch.addmm(given[t], known[t], recurrent)
            torch.sigmoid(total, out=opened[t])
            torch.tanh(total.narrow(1, 2 * size, size), out=new[t])
            torch.mul(enter[t], new[t], out=cell_at[t + 1]).addcmul_(keep[t], cell_at[t])
            torch.tanh(cell_at[t + 1], out=bound[t])
            torch.mul(show[t], bound[t], out=hiddens[t + 1])
            if t + 1 < T:
                tape.step(torch.addmm(controls_bias, hiddens[t + 1], controls), readings[t + 1])
        trusted = tape.in_range()
        ctx.save_for_backward(before, active, cells, bounded, recurrent, controls)
        ctx.tape = tape
        if trusted is not None:
            ctx.mark_non_differentiable(trusted)
        return before[1:, :, read:].contiguous(), trusted

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor, _: Tensor | None):
        before, active, cells, bounded, recurrent, controls = ctx.saved_tensors
        tape, (T, B, size) = ctx.tape, bounded.shape
        read = tape.reading_size
        slopes, into_cells = slopes_of(active, cells[:-1], bounded)
        slopes, keep = slopes.view(T, B, 4, size), active.narrow(2, size, size)
        into_cells, into_gates, out_gates = into_cells.unbind(0), slopes[:, :, :3], slopes[:, :, 3]
        into_gates, out_gates, keep = into_gates.unbind(0), out_gates.unbind(0), keep.unbind(0)
        d_gates, d_controls = torch.empty_like(active), active.new_empty(T, B, controls.size(1))
        d_into, d_out = (x.unbind(0) for x in d_gates.view(T, B, 4, size).split([3, 1], 2))
        by_step, d_steps, grads = d_gates.unbind(0), d_controls.unbind(0), grad.unbind(0)
        back, back_controls = recurrent.t(), controls.t()
        tape.begin_backward()
        d_cell = torch.zeros_like(cells[0])
        for t in range(T - 1, -1, -1):
            d_hidden = grads[t]
            if t + 1 < T:
                d_reading, d_recurrent = torch.mm(by_step[t + 1], back).split([read, size], 1)
                tape.step_backward(d_reading, d_steps[t])
                d_hidden = torch.addmm(d_hidden, d_steps[t], back_controls).add_(d_recurrent)
            d_cell = torch.addcmul(d_cell, d_hidden, into_cells[t])
            torch.mul(d_cell.unsqueeze(1), into_gates[t], out=d_into[t])
            torch.mul(d_hidden, out_gates[t], out=d_out[t].squeeze(1))
            d_cell = d_cell * keep[t]
        d_reading, d_hidden = torch.mm(by_step[0], back).split([read, size], 1)
        d_controls = d_controls[: T - 1].flatten(0, 1)
        return (
            d_gates,
            d_hidden,
            d_cell,
            before[:T].flatten(0, 1).t() @ d_gates.flatten(0, 1),
            before[1:T, :, read:].flatten(0, 1).t() @ d_controls,
            d_controls.sum(0),
            tape.start_gradient(d_reading),
            None,
        )


def slopes_of(active: Tensor, cell: Tensor, bounded: Tensor) -> tuple[Tensor, Tensor]:
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
