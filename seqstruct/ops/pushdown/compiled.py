"""The vector pushdown automaton in compiled form: all runs of a sequence, single steps, and those of a tape."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from seqstruct.ops.compiled import Operator
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.pushdown.columns import LARGEST_INNER, SMALLEST_TOTAL, Columns, step_order
from seqstruct.ops.pushdown.layout import LARGEST_READING
from seqstruct.ops.pushdown.tape import PushdownTape

ALIGNED = 8  # columns of a cache line, as in the source


def compiled_runs(moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> Tensor:
    """As `ScaledRuns`, of which it takes the arguments.

    O(B S T^2 Q^2) memory for the backward pass, which adds O(S T^2 Q^2) for each thread.  Threads share the batch rows.
    """
    return RUNS.call(moves, pops, pushed, bottom)[0]


def _table_size(steps: int, states: int) -> int:
    """Numbers in the table of one symbol, as the kernel lays it out: rows in blocks, each of which begins later."""
    block = ALIGNED // math.gcd(ALIGNED, states)
    while block * states < 2 * ALIGNED:
        block *= 2
    side, rows = block * states, steps * states
    whole, rest = rows // side, rows % side  # a whole block of rows begins one side later than that before
    return rows * (-(-rows // ALIGNED) * ALIGNED) - side * side * (whole * (whole - 1) // 2) - rest * whole * side


def _fake_runs(moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    T, B, S, Q, _ = pops.shape
    tables = (pops.new_empty(B * S * _table_size(T, Q)) for _ in range(2))
    return pops.new_empty(B, S, T + 1, Q, 1 + pushed.size(2)), *tables


def _setup_runs(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    moves, pops, pushed, _ = inputs
    ending, popped, around = output
    ctx.save_for_backward(moves, pops, pushed, popped, around, ending)
    ctx.mark_non_differentiable(popped, around)
    ctx.set_materialize_grads(False)


@first_derivatives_only
def _backward_runs(ctx: Any, grad: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
    return (None,) * 4 if grad is None else RUNS_BACKWARD.call(*ctx.saved_tensors, grad)


def _fake_runs_backward(moves: Tensor, pops: Tensor, pushed: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    return *(x.new_empty(x.shape) for x in (moves, pops, pushed)), pushed.new_empty(pushed.shape[1:])


RUNS = Operator("pushdown_runs", _fake_runs, _setup_runs, _backward_runs)
RUNS_BACKWARD = Operator("pushdown_runs_backward", _fake_runs_backward)
STEP = Operator("pushdown_step", None)
STEP_BACKWARD = Operator("pushdown_step_backward", None)

GIVEN, EXP, SIGMOID = range(3)  # what a pushed vector is of its controls, as in the source


def compiled_step(
    columns: Columns, table: Tensor, inputs: Tensor, totals: Tensor, scaled: Tensor, done: int
) -> tuple[Tensor, Tensor, Tensor]:
    """As `walk.write_step`, in one pass of the kernel."""
    states, symbols, size = columns.states, columns.symbols, columns.narrow - 1
    order = step_order(states, symbols, size, table.device)
    results = torch.empty_like(totals), totals.new_empty(len(totals), states * symbols * size), torch.empty_like(scaled)
    kept = None, None, None, None
    _call_step(columns, done, GIVEN, table, inputs, order, *kept, totals.contiguous(), scaled.contiguous(), results)
    return results


def _call_step(columns: Columns, done: int, kind: int, table: Tensor, *arguments: Tensor | None) -> None:
    """arguments: those of the kernel behind the table, the results last, in a tuple."""
    states, symbols, narrow, chunk, times = columns
    *given, results = arguments
    limits = SMALLEST_TOTAL, LARGEST_INNER
    STEP.call(states, symbols, narrow - 1, chunk, times, done, kind, *limits, table, *given, *results)


class CompiledPushdownTape(PushdownTape):
    """As `PushdownTape`; no two times share a chunk."""

    CHUNK = 1

    def _make_tables(self) -> None:
        """gates: for each row of the table gp of all later times, Q Q each, one after the other."""
        times = self.steps * (self.steps - 1) // 2
        self.table = self._room(self.batch, self.symbols, self.columns.room(self.steps + 1))
        self.chunks = self.columns.chunks(self.table, 1)
        self.gates = self.bottom.new_zeros(self.batch, self.symbols, times, self.states, self.states)

    def _begin(self) -> None:
        self.scaled = self.bottom.new_ones(self.batch, dtype=torch.bool)
        self.table.zero_()  # where rows are filled up to whole cache lines
        super()._begin()

    def step(self, controls: Tensor, reading: Tensor) -> None:
        """Weights of the step sum to 1 over the last total; readings do not depend on what they sum to."""
        self._advance(controls.double().contiguous())
        reading.copy_(self.readings[self.length - 1].flatten(1).clamp(max=LARGEST_READING))

    def _advance(self, controls: Tensor | None = None) -> None:
        """From one column to the next; without controls by the weights that the step had."""
        now = self.length
        kept = self.weights[now], self.vectors[now], self.landed[now], self.gates
        results = self.totals[now + 1], self.readings[now], self.scaled
        given = controls, None, *kept, self.totals[now], self.scaled
        _call_step(self.columns, now, SIGMOID if self.sigmoid else EXP, self.table, *given, results)
        self.length = now + 1

    def in_range(self) -> Tensor:
        """Rows whose totals were neither too small nor lost, and whose inner weights were not too large."""
        return self.scaled

    def begin_backward(self) -> None:
        """A second pass finds adjoints in the table, so it fills that anew."""
        super().begin_backward()
        *_, widest = self.columns.sizes(self.steps + 1)
        self.pending = self.bottom.new_zeros(self.batch, self.top, widest[2])
        self.grads = self.bottom.new_empty(self.batch, self.count + self.size)

    def step_backward(self, grad_reading: Tensor, grad_controls: Tensor) -> None:
        """`pending` is the adjoint of the last column, then that of the one before, each row as wide as the widest."""
        self.length -= 1
        now = self.length
        sizes = self.states, self.symbols, self.size, self.steps + 1, now, self.sigmoid
        kept = self.weights[now], self.vectors[now], self.landed[now], self.gates
        results = self.totals[now + 1], self.readings[now], self.pending, self.grads
        grad = grad_reading.double().contiguous()
        STEP_BACKWARD.call(*sizes, self.table, grad, *kept, *results)
        grad_controls.copy_(self.grads)
