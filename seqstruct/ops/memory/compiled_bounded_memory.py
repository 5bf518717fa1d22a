"""Causal attention to a memory of slots in compiled form: what `bounded_memory` computes chunk by chunk."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqstruct.ops.compiled import Operator
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.memory.compiled_linear_attention import places

SPAN = 256  # steps between two memories that are stored; as in the source


def compiled_bounded_memory(
    query: Tensor, key: Tensor, value: Tensor, control: Tensor, key_memory: Tensor, value_memory: Tensor, total: Tensor,
    level: Tensor, means: bool, empty: bool,
) -> tuple[Tensor, ...]:
    """As `_CausalBoundedMemory`, of which it takes the arguments.

    O(T (D + E + N) + T/SPAN N (D + E)) memory with the backward pass.
    """
    packed = torch.cat([key_memory.mT.flatten(1), value_memory.flatten(1), total], 1)  # G x, keys transposed
    inputs = query, key, value, control, packed
    recorded = torch.is_grad_enabled() and any(x.requires_grad for x in inputs)
    output, state, level, *_ = ATTEND.call(*inputs, level.to(control.dtype), means, empty, recorded)
    return output, *_unpacked(state, *value_memory.shape[1:], query.size(2)), level


def _fake(
    query: Tensor, key: Tensor, value: Tensor, control: Tensor, state: Tensor, level: Tensor, means: bool, empty: bool,
    recorded: bool,
) -> tuple[Tensor, ...]:
    stored = -(-query.size(1) // SPAN) if recorded else 0
    kept = (x.new_empty(x.size(0), stored, x.size(1)) for x in (state, level))
    return *(x.new_empty(x.shape) for x in (value, state, level)), *kept


def _setup(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    query, key, value, control, *_, means, empty, _ = inputs
    *_, level, states, levels = output
    ctx.kind = means, empty
    ctx.save_for_backward(query, key, value, control, states, levels)
    ctx.mark_non_differentiable(level, states, levels)
    ctx.set_materialize_grads(False)


@first_derivatives_only
def _backward(ctx: Any, d_output: Tensor | None, d_state: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
    controlled = ctx.needs_input_grad[3]
    *grads, d_control, d_state = ATTEND_BACKWARD.call(*ctx.saved_tensors, d_output, d_state, *ctx.kind, controlled)
    return *grads, d_control if controlled else None, d_state, None, None, None, None


def _fake_backward(
    query: Tensor, key: Tensor, value: Tensor, control: Tensor, states: Tensor, levels: Tensor,
    d_output: Tensor | None, d_state: Tensor | None, means: bool, empty: bool, controlled: bool,
) -> tuple[Tensor, ...]:
    d_control = control.new_empty(control.shape if controlled else (0,))
    return *(x.new_empty(x.shape) for x in (query, key, value)), d_control, states.new_empty(states.shape[::2])


def _fake_step(key: Tensor, value: Tensor, *_: Any) -> Tensor:
    return value.new_empty(value.shape)


ATTEND = Operator("bounded_memory", _fake, _setup, _backward)
ATTEND_BACKWARD = Operator("bounded_memory_backward", _fake_backward)
STEP = Operator("bounded_memory_step", _fake_step)


def write_and_read(
    memory: tuple[Tensor, ...], order: Tensor | None, query: Tensor, key: Tensor, value: Tensor, control: Tensor,
    means: bool, empty: bool,
) -> tuple[Tensor, ...]:
    """Write key B H 1 D and value B H 1 E by control B H 1 N into rows `order` of a memory, then read for one query.

    memory: keys B H N D, values B H N E and log-totals B H N.  order: B integers, or None for all rows, in place.
    Returns the output, B H 1 E, and the three parts of the memory.
    """
    old, ends, order = places(memory, order)
    output = STEP.call(key, value, control, query, *old, *ends, order, means, empty)
    return output, *ends


def _unpacked(state: Tensor, slots: int, value_dim: int, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    key_memory, value_memory, total = state.split([slots * dim, slots * value_dim, slots], 1)
    key_memory = key_memory.unflatten(1, (dim, slots)).transpose(1, 2)
    return key_memory.contiguous(), value_memory.reshape(-1, slots, value_dim), total.contiguous()
