"""All readings of a sequence of the superposition stack of `superposition.naive`, forward and back.

Axis letters: B batch, T steps, h height of the stack, m size of a stack vector.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.compiled import transformed, usable
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.gpu import takes
from seqstruct.ops.opaque import opaque
from seqstruct.ops.superposition.compiled import compiled_stack
from seqstruct.ops.superposition.naive import check_shapes, heights_of, no_op

CHUNK = 16  # steps whose action gradients are computed at once


def superposition_stack(
    actions: Tensor, pushed: Tensor, stack: Tensor | None = None, *, need_final: bool = True
) -> tuple[Tensor, Tensor | None]:
    """All readings of a sequence of stack actions, with a backward pass of its own (first derivatives only).

    actions: B T 3, probabilities of push, pop and no-op in this order; used as they are, not normalised.
    pushed:  B T m, the vectors pushed, any real numbers.
    stack:   B h m, the stack to go on from, row 0 the top; None for the empty stack.
    need_final: whether the final stack is returned.  Without it rows that no later reading can reach are not
    computed, which halves the cost and changes no reading.
    Returns readings B T m, after each step, and the final stack B max(1, h + T) m or None.
    Computes in float32 at least; both results have the data type of `pushed`.
    Raises ValueError if the shapes do not fit.
    Cost: O(B T (h + T) m) time and memory, T steps one after the other; without gradients O(B (h + T) m) memory.
    """
    check_shapes(actions, pushed, stack, steps=True)
    dtype = torch.promote_types(torch.promote_types(actions.dtype, pushed.dtype), torch.float32)
    if stack is None:
        stack = pushed.new_zeros(pushed.size(0), 0, pushed.size(2))
    start = stack.to(dtype)
    inputs = actions.to(dtype), pushed.to(dtype), start
    recorded = torch.is_grad_enabled() and any(x.requires_grad for x in inputs)
    if pushed.numel() and usable(*inputs) and not takes(*inputs[:2]):
        readings, final = compiled_stack(*inputs, need_final, recorded)
    else:
        readings, final = _step_by_step(*inputs, need_final)
    return readings.to(pushed.dtype), final.to(pushed.dtype) if need_final else None


def pad_actions(actions: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Replace the actions of padded steps by the no-op, which leaves the stack as it is.

    actions: B T 3, probabilities of push, pop and no-op; padding_mask: B T bool, True = padding, or None.
    """
    if padding_mask is None:
        return actions
    return torch.where(padding_mask.unsqueeze(-1), no_op(actions), actions)


def _fake(actions: Tensor, pushed: Tensor, start: Tensor, need_final: bool) -> tuple[Tensor, Tensor]:
    batch, steps, size = pushed.shape
    height = start.size(1) + steps
    final = (batch, height if height else 1, size) if need_final else (0,)
    return pushed.new_empty(pushed.shape), pushed.new_empty(final)


@opaque(_fake)
def _step_by_step(actions: Tensor, pushed: Tensor, start: Tensor, need_final: bool) -> tuple[Tensor, Tensor]:
    recorded = torch.is_grad_enabled() and any(x.requires_grad for x in (actions, pushed, start))
    function = _SuperpositionStack.apply if recorded or transformed() else _without_gradients  # which sees no tangents
    return function(actions, pushed, start, need_final)


def _without_gradients(actions: Tensor, pushed: Tensor, start: Tensor, need_final: bool) -> tuple[Tensor, Tensor]:
    """As `_SuperpositionStack`, with two slabs that take turns."""
    B, T, m = pushed.shape
    heights = heights_of(start.size(1), T, not need_final)
    weights = actions.detach().transpose(0, 1)[..., None, None].contiguous()  # T B 3 1 1
    vectors = pushed.detach()
    buffer = vectors.new_zeros(2, B, max(heights) + 3, m)
    slabs = buffer.unbind(0)
    slabs[0][:, 1 : heights[0] + 1] = start.detach()[:, : heights[0]]
    readings = vectors.new_empty(B, T, m)
    by_kernel = takes(actions, pushed)
    if by_kernel:
        from seqstruct.ops.superposition.triton import triton_forward

        readings = triton_forward(buffer, weights, vectors.contiguous(), start.size(1), not need_final)
    # rows above heights[t] are zeros or, once the heights fall, never read again
    for t, (push, pop, noop) in enumerate(() if by_kernel else _by_step(weights)):
        now, after = slabs[t % 2], slabs[(t + 1) % 2]
        now[:, 0] = vectors[:, t]
        blend(now, (push, noop, pop), after.narrow(1, 1, heights[t + 1]))
        readings[:, t] = after[:, 1]
    final = slabs[T % 2][:, 1 : max(1, heights[T]) + 1].clone() if need_final else vectors.new_empty(0)
    return readings, final


class _SuperpositionStack(torch.autograd.Function):
    """One buffer holds every stack: slab t is [v_{t+1}, V_t, 0, 0], so row i of V_{t+1} is the sum of rows i, i+1 and
    i+2 of slab t, times push, no-op and pop.  Adjoints lie in slabs [0, 0, dV_t, 0] and go the other way.
    """

    @staticmethod
    def forward(ctx, actions: Tensor, pushed: Tensor, start: Tensor, need_final: bool) -> tuple[Tensor, Tensor]:
        B, T, m = pushed.shape
        heights = heights_of(start.size(1), T, not need_final)
        weights = actions.transpose(0, 1)[..., None, None].contiguous()  # T B 3 1 1
        buffer = pushed.new_zeros(T + 1, B, max(heights) + 3, m)
        buffer[:T, :, 0] = pushed.transpose(0, 1)
        buffer[0, :, 1 : heights[0] + 1] = start[:, : heights[0]]
        ctx.by_kernel, ctx.truncated = takes(actions, pushed), not need_final
        slabs = buffer.unbind(0)
        if ctx.by_kernel:
            from seqstruct.ops.superposition.triton import triton_forward

            triton_forward(buffer, weights, pushed.contiguous(), start.size(1), ctx.truncated)
        for t, (push, pop, noop) in enumerate(() if ctx.by_kernel else _by_step(weights)):
            blend(slabs[t], (push, noop, pop), slabs[t + 1].narrow(1, 1, heights[t + 1]))
        ctx.save_for_backward(weights, buffer)
        ctx.heights, ctx.start = heights, start.size(1)
        ctx.set_materialize_grads(False)
        readings = buffer[1:, :, 1].transpose(0, 1).contiguous()
        final = buffer[T, :, 1 : max(1, heights[T]) + 1].clone() if need_final else buffer.new_empty(0)
        return readings, final

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad_readings: Tensor | None, grad_final: Tensor | None):
        weights, buffer = ctx.saved_tensors
        heights = ctx.heights
        T, B, m = buffer.size(0) - 1, buffer.size(1), buffer.size(3)
        adjoint = torch.zeros_like(buffer)
        if grad_final is not None and grad_final.numel():
            adjoint[T, :, 2 : heights[T] + 2] = grad_final[:, : heights[T]]
        if ctx.by_kernel:
            from seqstruct.ops.superposition.triton import triton_backward

            grad_readings = buffer.new_zeros(B, T, m) if grad_readings is None else grad_readings.contiguous()
            adjoint[T, :, 2] += grad_readings[:, -1]
            triton_backward(adjoint, weights, grad_readings, ctx.start, ctx.truncated)
        slabs, tops, steps = adjoint.unbind(0), adjoint[:, :, 2].unbind(0), _by_step(weights)
        readings = None if grad_readings is None else grad_readings.transpose(0, 1).unbind(0)
        for t in range(0 if ctx.by_kernel else T, 0, -1):
            if readings is not None:
                tops[t].add_(readings[t - 1])
            if heights[t - 1]:
                push, pop, noop = steps[t - 1]
                later = slabs[t].narrow(1, 1, slabs[t].size(1) - 1)
                blend(later, (pop, noop, push), slabs[t - 1].narrow(1, 2, heights[t - 1]))
        grad_actions = _action_gradients(buffer, adjoint, heights)
        grad_pushed = (adjoint[1:, :, 2] * weights[:, :, 0, 0]).transpose(0, 1)
        grad_start = buffer.new_zeros(B, ctx.start, m)
        grad_start[:, : heights[0]] = adjoint[0, :, 2 : heights[0] + 2]
        return grad_actions.transpose(0, 1), grad_pushed, grad_start, None


def _by_step(weights: Tensor) -> list[tuple[Tensor, ...]]:
    """Weights T B 3 1 1 as T triples of B 1 1."""
    return [step.unbind(1) for step in weights.unbind(0)]


def blend(rows: Tensor, weights: tuple[Tensor, Tensor, Tensor], out: Tensor) -> None:
    """out B h m: row i is the sum of rows i, i+1, i+2, each times its weight (B 1 1)."""
    height = out.size(1)
    torch.mul(rows.narrow(1, 0, height), weights[0], out=out)
    out.addcmul_(rows.narrow(1, 1, height), weights[1])
    out.addcmul_(rows.narrow(1, 2, height), weights[2])


def _action_gradients(buffer: Tensor, adjoint: Tensor, heights: list[int]) -> Tensor:
    """Products of each step's adjoint with the three stacks that it mixed: T B 3, push, pop, no-op."""
    steps, B, rows, m = buffer.shape
    slab, grads = rows * m, buffer.new_empty((steps - 1) * B, 3, 1)
    for first in range(1, steps, CHUNK):
        after = min(first + CHUNK, steps)
        count, width = (after - first) * B, max(heights[first:after]) * m
        changes = adjoint.as_strided((count, width, 1), (slab, 1, 1), first * B * slab + 2 * m)
        windows = buffer.as_strided((count, 3, width), (slab, m, 1), (first - 1) * B * slab)
        torch.bmm(windows, changes, out=grads[(first - 1) * B : (after - 1) * B])
    push, noop, pop = grads.view(steps - 1, B, 3).unbind(2)
    return torch.stack([push, pop, noop], 2)
