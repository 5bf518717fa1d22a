"""The superposition stack in compiled form: all steps of a sequence, and single steps of a recurrent network."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from seqstruct.ops.compiled import Operator
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.superposition.naive import rows_of

SLICE = 16  # columns of stack vectors that go together; as in the source


def compiled_stack(
    actions: Tensor, pushed: Tensor, start: Tensor, need_final: bool, recorded: bool
) -> tuple[Tensor, Tensor]:
    """As `superposition_stack` for a batch, lengths and vectors that are not empty.

    recorded: whether stacks are kept for the backward pass, sum of heights times B m numbers.
    """
    readings, final, _ = STACK.call(actions, pushed, start, need_final, recorded)
    return readings, final


def _fake(actions: Tensor, pushed: Tensor, start: Tensor, need_final: bool, recorded: bool) -> tuple[Tensor, ...]:
    B, T, m = pushed.shape
    stored = (rows_of(start.size(1), T, not need_final) + 3 * T) * B * m if recorded else 0
    final = (B, start.size(1) + T, m) if need_final else (0,)
    return pushed.new_empty(B, T, m), pushed.new_empty(final), pushed.new_empty(stored)


def _setup(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    actions, pushed, start, need_final, _ = inputs
    stacks = output[2]
    ctx.sizes = pushed.size(2), start.size(1), not need_final
    ctx.save_for_backward(actions, stacks)
    ctx.mark_non_differentiable(stacks)
    ctx.set_materialize_grads(False)


@first_derivatives_only
def _backward(ctx: Any, grad_readings: Tensor | None, grad_final: Tensor | None, _):
    actions, stacks = ctx.saved_tensors
    *_, truncated = ctx.sizes
    grad_final = None if truncated else grad_final
    grad_actions, *others = STACK_BACKWARD.call(actions, stacks, grad_readings, grad_final, *ctx.sizes)
    return grad_actions.sum(0), *others, None, None


def _fake_backward(
    actions: Tensor, stacks: Tensor, d_readings: Tensor | None, d_final: Tensor | None, size: int, height: int,
    truncated: bool,
) -> tuple[Tensor, ...]:
    B, T, _ = actions.shape
    shapes = (-(-size // SLICE), B, T, 3), (B, T, size), (B, height, size)
    return tuple(actions.new_empty(shape) for shape in shapes)


STACK = Operator("superposition_stack", _fake, _setup, _backward)
STACK_BACKWARD = Operator("superposition_stack_backward", _fake_backward)
STEP = Operator("superposition_step", None)
STEP_BACKWARD = Operator("superposition_step_backward", None)
