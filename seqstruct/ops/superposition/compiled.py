"""The superposition stack in compiled form: all steps of a sequence, and single steps of a recurrent network."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.compiled import call
from seqstruct.ops.first_derivatives import first_derivatives_only

SLICE = 16  # columns of stack vectors that go together; as in the source


class CompiledSuperpositionStack(torch.autograd.Function):
    """As `superposition_stack` for a batch, lengths and vectors that are not empty.

    heights: T+1 numbers of rows, as `heights_of` has them; recorded: whether stacks are kept for the backward pass,
    sum of heights times B m numbers.
    """

    @staticmethod
    def forward(
        ctx, actions: Tensor, pushed: Tensor, start: Tensor, heights: list[int], need_final: bool, recorded: bool
    ) -> tuple[Tensor, Tensor]:
        B, T, m = pushed.shape
        ctx.sizes = B, T, m, start.size(1), int(not need_final)
        actions, pushed = actions.contiguous(), pushed.contiguous()
        readings = torch.empty_like(pushed)
        stacks = pushed.new_empty((sum(heights[:T]) + 3 * T) * B * m) if recorded else None
        final = pushed.new_empty(B, heights[T], m) if need_final else None
        inputs = actions, pushed, start.contiguous(), stacks
        call("superposition_stack_forward", *ctx.sizes, *inputs, readings, final)
        if recorded:
            ctx.save_for_backward(actions, stacks)
        ctx.set_materialize_grads(False)
        return readings, pushed.new_empty(0) if final is None else final

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad_readings: Tensor | None, grad_final: Tensor | None):
        actions, stacks = ctx.saved_tensors
        B, T, m, height, truncated = ctx.sizes
        if truncated:
            grad_final = None
        grads = [None if x is None else x.contiguous() for x in (grad_readings, grad_final)]
        grad_actions = actions.new_empty(-(-m // SLICE), B, T, 3)
        grad_pushed, grad_start = actions.new_empty(B, T, m), actions.new_zeros(B, height, m)
        call("superposition_stack_backward", *ctx.sizes, actions, stacks, *grads, grad_actions, grad_pushed, grad_start)
        return grad_actions.sum(0), grad_pushed, grad_start, None, None, None
