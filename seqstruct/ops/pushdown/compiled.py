"""The vector pushdown automaton in compiled form: all runs of a sequence, single steps, and those of a tape."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.compiled import call
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.pushdown.layout import LARGEST_READING, transition_count
from seqstruct.ops.pushdown.recurrence import LARGEST_INNER, SMALLEST_TOTAL


class CompiledRuns(torch.autograd.Function):
    """As `ScaledRuns`, of which it takes the arguments.

    O(B S T^2 Q^2) memory for the backward pass, which adds O(S T^2 Q^2) for each thread.  Threads share the batch rows.
    """

    @staticmethod
    def forward(ctx, moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> Tensor:
        T, B, S, Q, _ = pops.shape
        inputs = moves, pops, pushed, bottom = tuple(x.contiguous() for x in (moves, pops, pushed, bottom))
        sizes = B, T, S, Q, pushed.size(2)
        count = pops.new_empty(1)
        call("pushdown_size", *sizes[:4], count)
        popped, around = (pops.new_empty(int(count)) for _ in range(2))
        ending = pops.new_empty(B, S, T + 1, Q, 1 + pushed.size(2))
        call("pushdown_forward", *sizes, *inputs, popped, around, ending)
        ctx.sizes = sizes
        ctx.save_for_backward(*inputs[:3], popped, around, ending)
        return ending

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor):
        moves, pops, pushed, *_ = ctx.saved_tensors
        gradients = *map(torch.empty_like, (moves, pops, pushed)), pushed.new_empty(pushed.shape[1:])
        call("pushdown_backward", *ctx.sizes, *ctx.saved_tensors, grad.contiguous(), *gradients)
        return gradients


def compiled_step(
    table: Tensor,
    inputs: Tensor,
    totals: Tensor,
    scaled: Tensor,
    limits: tuple[float, float],
    done: int,
    states: int,
    symbols: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Write the column of time `done` + 1 into a table B S L, as `PushdownState` has it, with room for that.

    inputs: B A+m, log-weights and the pushed vector; totals: B, of the last column; scaled: B bool, whether the row of
    the batch has been in range so far; limits: the smallest total and the largest inner weight in range.  All float64.
    Returns the column's totals, 1 where out of range; readings B (Q S m), 0 there; and `scaled` anew.
    """
    B, count = inputs.shape
    size = count - states * symbols * (2 * states * symbols + states)
    sizes = B, states, symbols, size, done, table.size(2)
    results = torch.empty_like(totals), totals.new_empty(B, states * symbols * size), torch.empty_like(scaled)
    given = inputs, inputs.stride(0), totals.contiguous(), scaled.contiguous()
    call("pushdown_step", *sizes, table, *given, *limits, *results)
    return results


class CompiledPushdownTape:
    """As `PushdownTape`, with its arrangement of controls and readings; O(B T^2 S^2 Q^2) memory."""

    def __init__(self, bottom: Tensor, steps: int, *, states: int, symbols: int, sigmoid: bool):
        """As `PushdownTape`."""
        B, size = bottom.shape
        top = states * symbols
        self.reading_size, self.steps, self.size = top * size, steps, size
        self.sizes = B, states, symbols, size, steps
        self.bottom, self.sigmoid = bottom.double().contiguous(), int(sigmoid)
        sizes = self.bottom.new_empty(3)
        call("pushdown_tape_sizes", *self.sizes[1:], sizes)
        self.room, links, self.adjoint = (int(x) for x in sizes.tolist())
        self.links = self._zeros(B, symbols, links)
        kept = transition_count(states, symbols), size, top, self.reading_size
        self.weights, self.pushed, self.landed, self.readings = (self._zeros(steps, B, n) for n in kept)
        self.totals = self._zeros(steps + 1, B)
        self.whole = True  # whether the table still has its columns
        self._begin()

    def _zeros(self, *shape: int) -> Tensor:
        return self.bottom.new_zeros(*shape)

    def _begin(self) -> None:
        """The column of time 0."""
        self.length = 0
        self.table = self._zeros(len(self.bottom), self.sizes[2], self.room)
        self.table[:, 0, 0] = 1.0
        self.table[:, 0, 1 : 1 + self.size] = self.bottom
        self.totals[0] = 1.0

    def first_reading(self, reading: Tensor) -> None:
        """The bottom vector in state 0 and symbol 0."""
        reading.zero_()[:, : self.size] = self.bottom

    def step(self, controls: Tensor, reading: Tensor) -> None:
        """Weights of the step sum to 1 over the last total; readings do not depend on what they sum to."""
        self._advance(controls.double().contiguous())
        reading.copy_(self.readings[self.length - 1].clamp(max=LARGEST_READING))

    def _advance(self, controls: Tensor | None) -> None:
        """From one column to the next; without controls by the weights that the step had."""
        now = self.length
        kept = self.links, self.weights[now], self.pushed[now], self.landed[now]
        results = self.totals[now], self.totals[now + 1], self.readings[now]
        call("pushdown_tape_step", *self.sizes, now, self.sigmoid, self.table, controls, *kept, *results)
        self.length = now + 1

    def in_range(self) -> Tensor:
        """Rows whose totals were neither too small nor lost, and whose inner weights were not too large."""
        return (self.totals >= SMALLEST_TOTAL).all(0) & (self.table.amax((1, 2)) <= LARGEST_INNER)

    def begin_backward(self) -> None:
        """A second pass finds adjoints in the table, so it fills that anew."""
        if not self.whole:
            self._begin()
            while self.length < self.steps:
                self._advance(None)
        self.whole = self.steps == 0
        self.pending = self._zeros(len(self.bottom), self.adjoint)  # of the last column, then of the one before
        self.grads = self.bottom.new_empty(len(self.bottom), self.weights.size(2) + self.size)

    def step_backward(self, grad_reading: Tensor, grad_controls: Tensor) -> None:
        """Take the last step back that has not been yet."""
        self.length -= 1
        now = self.length
        kept = self.links, self.weights[now], self.pushed[now], self.landed[now]
        results = self.totals[now + 1], self.readings[now], self.pending, self.grads
        grad = grad_reading.double().contiguous()
        call("pushdown_tape_step_back", *self.sizes, now, self.sigmoid, self.table, grad, *kept, *results)
        grad_controls.copy_(self.grads)

    def start_gradient(self, grad_reading: Tensor) -> Tensor:
        """Of the bottom vectors, B m."""
        return (self.pending[:, 1 : 1 + self.size] + grad_reading[:, : self.size]).to(grad_reading.dtype)
