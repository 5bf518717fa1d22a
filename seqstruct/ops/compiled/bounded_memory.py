"""Causal attention to a memory of slots in compiled form: what `bounded_memory` computes chunk by chunk."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqstruct.ops.compiled import call

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
    @once_differentiable
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


def _packed(key_memory: Tensor, value_memory: Tensor, total: Tensor) -> Tensor:
    """G x: one memory after another, keys transposed (D N), as the source has them."""
    return torch.cat([key_memory.transpose(1, 2).flatten(1), value_memory.flatten(1), total], 1)


def _unpacked(state: Tensor, slots: int, dim: int, value_dim: int) -> tuple[Tensor, Tensor, Tensor]:
    key_memory, value_memory, total = state.split([slots * dim, slots * value_dim, slots], 1)
    key_memory = key_memory.unflatten(1, (dim, slots)).transpose(1, 2)
    return key_memory.contiguous(), value_memory.reshape(-1, slots, value_dim), total.contiguous()
