"""Causal attention through a memory of fixed size in compiled form: what `linear_attention` computes chunk by chunk."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.compiled import call, usable
from seqstruct.ops.first_derivatives import first_derivatives_only

SPAN = 256  # steps between two memories that are stored; as in the source


class CompiledLinearAttention(torch.autograd.Function):
    """As `_CausalLinearAttention`, of which it takes the arguments.

    O(T (N + E) + T/SPAN N E) memory with the backward pass.
    """

    @staticmethod
    def forward(ctx, query, key, value, memory, total, weight, log_decay, features, floor, *parameters):
        groups, steps, dim = query.shape
        sizes = (groups, steps, dim, memory.size(1), value.size(2), *_kind(features), float(floor))
        parameters = [x.contiguous() for x in parameters]
        rows, bias = [*parameters, None, None][:2]
        weight, log_decay = (None if x is None else x.contiguous() for x in (weight, log_decay))
        output, denominator = torch.empty_like(value), value.new_empty(groups, steps)
        memories = totals = None
        if any(ctx.needs_input_grad):
            stored = -(-steps // SPAN)
            memories, totals = memory.new_empty(groups, stored, *memory.shape[1:]), memory.new_empty(
                groups, stored, memory.size(1)
            )
        ends = torch.empty_like(memory), torch.empty_like(total)
        inputs = query, key, value, weight, log_decay, rows, bias
        call("linear_attention_forward", *sizes, *inputs, memory, total, output, denominator, memories, totals, *ends)
        ctx.sizes = sizes
        if memories is not None:
            ctx.save_for_backward(*inputs, memories, totals, output, denominator, memory, total, *ends)
        ctx.mark_non_differentiable(denominator)
        return output, denominator, *ends

    @staticmethod
    @first_derivatives_only
    def backward(ctx, d_output, _, d_memory_end, d_total_end):
        *inputs, memories, totals, output, denominator, memory, total, memory_end, total_end = ctx.saved_tensors
        query, key, value, weight, log_decay, rows, bias = inputs
        decayed, floor = log_decay is not None, ctx.sizes[-1]
        d_query, d_key, d_value = (torch.empty_like(x) for x in (query, key, value))
        d_weight = torch.empty_like(denominator) if ctx.needs_input_grad[5] or decayed else None
        d_rows, d_bias = (None if x is None else torch.empty_like(x) for x in (rows, bias))
        d_memory, d_total = d_memory_end.clone().contiguous(), d_total_end.clone().contiguous()
        call(
            "linear_attention_backward", *ctx.sizes, *inputs, memories, totals, output, denominator,
            d_output.contiguous(), d_query, d_key, d_value, d_weight, d_rows, d_bias, d_memory, d_total,
        )
        d_decay = None
        if decayed:
            d_first, d_last = (
                (x * dx).sum((1, 2)) + (z * dz).sum(1)
                for x, dx, z, dz in (
                    (memory, d_memory, total, d_total), (memory_end, d_memory_end, total_end, d_total_end),
                )
            )
            d_keys = d_weight if weight is None else d_weight * weight
            d_decay = decay_gradient(d_first, d_last, d_keys, d_output, output, denominator, floor)
        d_parameters = [x for x in (d_rows, d_bias) if x is not None]
        d_weight = d_weight if ctx.needs_input_grad[5] else None
        return d_query, d_key, d_value, d_memory, d_total, d_weight, d_decay, None, None, *d_parameters


def decay_gradient(
    d_first: Tensor, d_last: Tensor, d_keys: Tensor, d_output: Tensor, output: Tensor, denominator: Tensor, floor: float
) -> Tensor:
    """Gradient of a schedule's log_decay, G T+1: of the memory at first and last (G), of the keys' scales (G T).

    A reading is a ratio, so the decay up to its own step cancels, but for those whose denominator is the floor.
    """
    d_decay = torch.cat([-d_first.unsqueeze(1), -d_keys], 1).double()
    d_decay[:, -1] += d_last
    if floor:
        d_decay[:, 1:] += (d_output * output).sum(2).masked_fill(denominator >= floor, 0.0)
    return d_decay


def fits_step(features, *tensors: Tensor | None) -> bool:
    """Whether one query, B H 1 D, is left to `read_one` or `write_and_read`: without a gradient to record."""
    recorded = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)
    one = tensors[0].size(2) == 1 and (features is None or features.chunked)
    return one and not recorded and usable(*tensors, *_parameters(features))


def read_one(memory, total, query, features, floor) -> tuple[Tensor, Tensor]:
    """Output B H 1 E and denominator B H 1, before the floor, for query B H 1 D; memory B H N E, total B H N."""
    nothing = None, None, None, None
    return _step(_plain(memory), _plain(total), nothing, query, features, floor, None, None, None)


def write_and_read(
    memory: Tensor,
    total: Tensor,
    order: Tensor | None,
    query: Tensor,
    written: tuple[Tensor | None, ...],
    features,
    floor: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Write one key into rows `order` of memory B H N E and total B H N, then `read_one`.

    order: long, or None for all rows, which are then written in place.  written: key B H 1 D, value B H 1 E, weight
    B H 1, a factor of the key's features, or None, and log_decay B H 2, float64, of the schedule, or None.
    Returns output, denominator, memory and total.
    """
    memory, total = _plain(memory), _plain(total)
    ends = memory, total
    if order is not None:
        ends = tuple(x.new_empty(order.size(0), *x.shape[1:]) for x in ends)
    return *_step(memory, total, written, query, features, floor, *ends, order), *ends


def _step(memory, total, written, query, features, floor, memory_end, total_end, order) -> tuple[Tensor, Tensor]:
    query = _plain(query)
    batch, heads, _, dim = query.shape
    sizes = batch * heads, heads, dim, *memory.shape[2:]
    map_ = (*_kind(features), 1.0 if features is None else float(features.scale))
    rows, bias = [*map(_plain, _parameters(features)), None, None][:2]
    output, denominator = query.new_empty(batch, heads, 1, memory.size(3)), query.new_empty(batch, heads, 1)
    call("linear_attention_step", *sizes, *map_, rows, bias, float(floor), *map(_plain, written), query, memory, total,
         memory_end, total_end, output, denominator, _plain(order))  # fmt: skip
    return output, denominator


def _parameters(features) -> tuple[Tensor, ...]:
    """Those of the heads, once."""
    return () if features is None else features.by_head()


def _plain(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.contiguous()


def _kind(features) -> tuple[int, int]:
    """Number of the map in the source, and whether vectors are scaled to norm 1."""
    return (0, 0) if features is None else (features.kind, int(getattr(features, "normed", False)))
