"""Causal attention through a memory of fixed size in compiled form: what `linear_attention` computes chunk by chunk."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqstruct.ops.compiled import Operator, usable
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.gpu import one_step

SPAN = 256  # steps between two memories that are stored; as in the source


def compiled_linear_attention(
    query: Tensor, key: Tensor, value: Tensor, memory: Tensor, total: Tensor, weight: Tensor | None,
    log_decay: Tensor | None, features: Any, floor: float, *parameters: Tensor,
) -> tuple[Tensor, ...]:
    """As `_CausalLinearAttention`, of which it takes the arguments.

    O(T (N + E) + T/SPAN N E) memory with the backward pass.
    """
    rows, bias = [*parameters, None, None][:2]
    inputs = query, key, value, memory, total, weight, log_decay, rows, bias
    recorded = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    return ATTEND.call(*inputs, *kind_of(features), float(floor), recorded)[:4]


def _fake(query: Tensor, key: Tensor, value: Tensor, memory: Tensor, total: Tensor, *others: Any) -> tuple[Tensor, ...]:
    groups, steps = query.shape[:2]
    stored = -(-steps // SPAN) if others[-1] else 0
    return (
        value.new_empty(value.shape), value.new_empty(groups, steps), memory.new_empty(memory.shape),
        total.new_empty(total.shape), memory.new_empty(groups, stored, *memory.shape[1:]),
        total.new_empty(groups, stored, total.size(1)),
    )


def _setup(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    query, key, value, memory, total, weight, log_decay, rows, bias, *ctx.kind, _ = inputs
    read, denominator, *ends, memories, totals = output
    given = query, key, value, weight, log_decay, rows, bias
    ctx.save_for_backward(*given, memories, totals, read, denominator, memory, total, *ends)
    ctx.mark_non_differentiable(denominator, memories, totals)
    ctx.set_materialize_grads(False)


@first_derivatives_only
def _backward(
    ctx: Any, d_output: Tensor | None, _: None, d_memory_end: Tensor | None, d_total_end: Tensor | None, *__: None
) -> tuple[Tensor | None, ...]:
    *known, memory, total, memory_end, total_end = ctx.saved_tensors
    *_, weight, log_decay, rows, bias, _, _, output, denominator = known
    decayed, floor = log_decay is not None, ctx.kind[-1]
    weighted = ctx.needs_input_grad[5] or decayed
    *grads, d_weight, d_rows, d_bias = ATTEND_BACKWARD.call(
        *known, d_output, d_memory_end, d_total_end, *ctx.kind, weighted
    )
    d_decay = None
    if decayed:
        *_, d_memory, d_total = grads
        d_first = _inner(memory, d_memory) + _inner(total, d_total)
        d_last = _inner(memory_end, d_memory_end) + _inner(total_end, d_total_end)
        d_output = torch.zeros_like(output) if d_output is None else d_output
        d_keys = d_weight if weight is None else d_weight * weight
        d_decay = decay_gradient(d_first, d_last, d_keys, d_output, output, denominator, floor)
    d_weight = d_weight if ctx.needs_input_grad[5] else None
    d_parameters = (dx if x is not None else None for x, dx in ((rows, d_rows), (bias, d_bias)))
    return *grads, d_weight, d_decay, *d_parameters, None, None, None, None


def _inner(x: Tensor, grad: Tensor | None) -> Tensor:
    """For each group, 0 without a gradient."""
    return x.new_zeros(x.size(0)) if grad is None else (x * grad).flatten(1).sum(1)


def _fake_backward(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, log_decay: Tensor | None, rows: Tensor | None,
    bias: Tensor | None, memories: Tensor, totals: Tensor, output: Tensor, denominator: Tensor,
    d_output: Tensor | None, d_end: Tensor | None, d_sum_end: Tensor | None, kind: int, normed: bool, floor: float,
    weighted: bool,
) -> tuple[Tensor, ...]:
    d_weight = denominator.new_empty(denominator.shape if weighted else (0,))
    d_parameters = (query.new_empty((0,) if x is None else x.shape) for x in (rows, bias))
    ends = (x.new_empty(x.size(0), *x.shape[2:]) for x in (memories, totals))
    return *(x.new_empty(x.shape) for x in (query, key, value)), *ends, d_weight, *d_parameters


def _fake_step(query: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    old, _, new, *_ = others[10:]
    batch, heads = query.shape[:2]
    return query.new_empty(batch, heads, 1, (new if old is None else old).size(3)), query.new_empty(batch, heads, 1)


ATTEND = Operator("linear_attention", _fake, _setup, _backward)
ATTEND_BACKWARD = Operator("linear_attention_backward", _fake_backward)
STEP = Operator("linear_attention_step", _fake_step)


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


def fits_step(features: Any, *tensors: Tensor | None, log_decay: Tensor | None = None) -> bool:
    """Whether one query, B H 1 D, is left to `read_one` or `write_and_read`: as `one_step` has it."""
    return one_step(features, *tensors, log_decay) and usable(*tensors, *_parameters(features))


def read_one(memory: Tensor, total: Tensor, query: Tensor, features: Any, floor: float) -> tuple[Tensor, Tensor]:
    """Output B H 1 E and denominator B H 1, before the floor, for query B H 1 D; memory B H N E, total B H N."""
    old = memory.contiguous(), total.contiguous()
    return STEP.call(query, None, None, None, None, *_map(features), float(floor), *old, None, None, None)


def write_and_read(
    memory: Tensor,
    total: Tensor,
    order: Tensor | None,
    query: Tensor,
    written: tuple[Tensor | None, ...],
    features: Any,
    floor: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Write one key into rows `order` of memory B H N E and total B H N, then `read_one`.

    order: integers, or None for all rows, which are then written in place.  written: key B H 1 D, value B H 1 E, weight
    B H 1, a factor of the key's features, or None, and log_decay B H 2, float64, of the schedule, or None.
    Returns output, denominator, memory and total.
    """
    old, ends, order = places((memory, total), order)
    return *STEP.call(query, *written, *_map(features), float(floor), *old, *ends, order), *ends


def places(memory: tuple[Tensor, ...], order: Tensor | None) -> tuple[tuple, tuple[Tensor, ...], Tensor | None]:
    """The parts of the old memory, None where it is written in place; where those of the new one go; and the order."""
    memory = tuple(x.contiguous() for x in memory)
    if order is None:
        if not torch.compiler.is_compiling():
            torch.autograd.graph.increment_version(memory)  # a kernel's writing is not seen by autograd
        return (None,) * len(memory), memory, None
    return memory, tuple(x.new_empty(order.size(0), *x.shape[1:]) for x in memory), order.long().contiguous()


def _map(features: Any) -> tuple[Tensor | int | float | None, ...]:
    """rows, bias, kind, normed and scale of the kernel for steps."""
    rows, bias = [*_parameters(features), None, None][:2]
    return rows, bias, *kind_of(features), 1.0 if features is None else float(features.scale)


def _parameters(features: Any) -> tuple[Tensor, ...]:
    """Those of the heads, once."""
    return () if features is None else features.by_head()


def kind_of(features: Any) -> tuple[int, bool]:
    """Number of the map in the source, and whether vectors are scaled to norm 1."""
    return (0, False) if features is None else (features.kind, bool(getattr(features, "normed", False)))
