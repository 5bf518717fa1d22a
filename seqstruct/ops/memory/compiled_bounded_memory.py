"""Causal attention to a memory of slots in compiled form: what `bounded_memory` computes chunk by chunk."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.compiled import call, usable
from seqstruct.ops.first_derivatives import first_derivatives_only

SPAN = 256  # steps between two memories that are stored; as in the source


class CompiledBoundedMemory(torch.autograd.Function):
    """As `_CausalBoundedMemory`, of which it takes the arguments.

    O(T (D + E + N) + T/SPAN N (D + E)) memory with the backward pass.
    """

    @staticmethod
    def forward(ctx, query, key, value, control, key_memory, value_memory, total, level, means, empty):
        groups, steps, dim = query.shape
        slots, value_dim = value_memory.shape[1:]
        ctx.sizes = groups, steps, dim, slots, value_dim, int(means), int(empty)
        ctx.kind = "" if control.dtype == query.dtype else "_wide"
        state, level = _packed(key_memory, value_memory, total), level.to(control.dtype)
        output, state_end, level_end = torch.empty_like(value), torch.empty_like(state), torch.empty_like(level)
        states = levels = None
        if any(ctx.needs_input_grad):
            stored = -(-steps // SPAN)
            states, levels = state.new_empty(groups, stored, state.size(1)), level.new_empty(groups, stored, slots)
            ctx.save_for_backward(query, key, value, control, states, levels)
        inputs = query, key, value, control, state, level
        call(f"bounded_memory_forward{ctx.kind}", *ctx.sizes, *inputs, output, states, levels, state_end, level_end)
        ctx.mark_non_differentiable(level_end)
        return output, *_unpacked(state_end, slots, dim, value_dim), level_end

    @staticmethod
    @first_derivatives_only
    def backward(ctx, d_output, d_key_memory, d_value_memory, d_total, _):
        *inputs, states, levels = ctx.saved_tensors
        _, _, dim, slots, value_dim, *_ = ctx.sizes
        d_query, d_key, d_value, d_control = (torch.empty_like(x) for x in inputs)
        if not ctx.needs_input_grad[3]:
            d_control = None
        d_state = _packed(d_key_memory, d_value_memory, d_total)
        call(
            f"bounded_memory_backward{ctx.kind}", *ctx.sizes, *inputs, states, levels, d_output.contiguous(),
            d_query, d_key, d_value, d_control, d_state,
        )
        return d_query, d_key, d_value, d_control, *_unpacked(d_state, slots, dim, value_dim), None, None, None


def fits_step(*tensors: Tensor) -> bool:
    """Whether one query and one key, B H 1 D, are left to `write_and_read`: without a gradient to record."""
    recorded = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    return tensors[0].size(2) == 1 and not recorded and usable(*tensors)


def write_and_read(
    memory: tuple[Tensor, ...], order: Tensor | None, query: Tensor, key: Tensor, value: Tensor, control: Tensor,
    means: bool, empty: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Write key B H 1 D and value B H 1 E by control B H 1 N into rows `order` of a memory, then read for one query.

    memory: keys B H N D, values B H N E and log-totals B H N.  order: B long, or None for all rows, in place.
    Returns the output, B H 1 E, and the three parts of the memory.
    """
    memory = ends = tuple(x.contiguous() for x in memory)
    if order is not None:
        ends = tuple(x.new_empty(order.size(0), *x.shape[1:]) for x in memory)
    batch, heads, _, dim = query.shape
    slots, value_dim = memory[1].shape[2:]
    sizes = batch * heads, heads, dim, slots, value_dim, int(means), int(empty)
    output = query.new_empty(batch, heads, 1, value_dim)
    given = (x.contiguous() for x in (key, value, control, query))
    call("bounded_memory_step", *sizes, *given, *memory, *ends, output, None if order is None else order.contiguous())
    return output, *ends


def _packed(key_memory: Tensor, value_memory: Tensor, total: Tensor) -> Tensor:
    """G x: one memory after another, keys transposed (D N), as the source has them."""
    return torch.cat([key_memory.transpose(1, 2).flatten(1), value_memory.flatten(1), total], 1)


def _unpacked(state: Tensor, slots: int, dim: int, value_dim: int) -> tuple[Tensor, Tensor, Tensor]:
    key_memory, value_memory, total = state.split([slots * dim, slots * value_dim, slots], 1)
    key_memory = key_memory.unflatten(1, (dim, slots)).transpose(1, 2)
    return key_memory.contiguous(), value_memory.reshape(-1, slots, value_dim), total.contiguous()
