"""Attention whose weights are products of features, through a memory of fixed size (Peng 2022, eq. 4.5 to 4.8).

    out_t = phi(q_t) S_t / (phi(q_t) . z_t),   S_t = sum_s d_ts phi(k_s) (x) v_s,   z_t = sum_s d_ts phi(k_s)

over the keys s written before the reading; d_ts is the product of the decays after s (1 without a gate).  Nothing is
added to the denominator; where it is 0, as for the empty memory, or too small for its reciprocal to be exact (in
float32 1e-31), the output is 0.  A `floor` above 0 stands in the place of denominators below it, which estimates by
random features may have.

Axis letters: B batch, H heads, T queries, S keys, N features of a key, E size of a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.compiled import usable
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.gpu import takes, takes_step
from seqstruct.ops.memory.compiled_linear_attention import (
    compiled_linear_attention,
    decay_gradient,
    fits_step,
    kind_of,
    read_one,
    write_and_read,
)
from seqstruct.ops.memory.feature_maps import FeatureMap, chunked_map
from seqstruct.ops.opaque import opaque

CHUNK = 32
LOWEST = -1e30  # stands for log 0 where the difference of two of them must be 0


class Memory(NamedTuple):
    """memory: B H N E, S e^-level; total: B H N, z e^-level; level: B H, the largest logarithm of a key's scale so far.

    The level cancels in every reading; it keeps exponential features in range however large they are.
    """

    memory: Tensor
    total: Tensor
    level: Tensor


def empty_memory(batch: int, heads: int, features: int, value_dim: int, like: Tensor) -> Memory:
    """A memory without keys, on the device of `like` and of its precision, float32 at least."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    memory = torch.zeros(batch, heads, features, value_dim, dtype=dtype, device=like.device)
    return Memory(memory, memory.new_zeros(batch, heads, features), memory.new_full((batch, heads), LOWEST))


class Schedule(NamedTuple):
    """How keys enter a memory that is decayed.

    weight: B H S, the factor of each key's features.  log_decay: B H S+1, float64, the logarithm of the decay up to
    and including each step, but for a constant; entry 0 belongs to the memory that is gone on from.
    level: B H, the memory's level after the last key.
    """

    weight: Tensor
    log_decay: Tensor
    level: Tensor


def schedule(level: Tensor, log_scale: Tensor | None, log_gate: Tensor | None) -> Schedule | None:
    """Decays that realise gates and keep the scales of the keys in range; None if there are neither.

    level: B H.  log_scale: B H S, logarithms of factors of the keys, at least LOWEST.  log_gate: B H S, at most 0.
    The running maximum of the scales is held constant in the backward pass, exactly, since it cancels.
    """
    given = log_gate if log_scale is None else log_scale
    if given is None:
        return None
    steps = given.new_zeros(*given.shape[:2], given.size(2) + 1, dtype=torch.float64)
    weight = torch.ones_like(given)
    if log_gate is not None:
        steps = torch.cat([steps[..., :1], log_gate.double().cumsum(-1)], -1)
    if log_scale is not None:
        scales = torch.cat([level.unsqueeze(-1), log_scale.detach()], -1)
        levels = scales.cummax(-1).values
        level = levels[..., -1]
        weight = (log_scale - levels[..., 1:]).exp()
        steps = steps - levels.double()
    return Schedule(weight, steps, level)


def write(
    state: Memory,
    key: Tensor,
    value: Tensor,
    plan: Schedule | None = None,
    features: FeatureMap | None = None,
    weight: Tensor | None = None,
) -> Memory:
    """Add keys B H S N (features) or B H S D (vectors that `features` makes features of), and values B H S E.

    weight: B H S, factors of the keys' features (which contain the plan's), or None.
    O(S N E) time.  The old memory is consumed: written in place where gradients are off.
    """
    memory, total, level = state
    key = key if features is None else features(key)[0]
    key = key if weight is None else key * weight.unsqueeze(-1)
    if plan is not None:
        left = (plan.log_decay[..., -1:] - plan.log_decay).to(key.dtype).exp()
        memory, total = memory * left[..., :1, None], total * left[..., :1]
        key, level = key * left[..., 1:, None], plan.level
    if torch.is_grad_enabled():
        return Memory(memory + key.transpose(-1, -2) @ value, total + key.sum(-2), level)
    if key.size(-2) == 1:
        return Memory(memory.addcmul_(key.transpose(-1, -2), value), total.add_(key.squeeze(-2)), level)
    written = memory.flatten(0, 1).baddbmm_(key.flatten(0, 1).transpose(-1, -2), value.flatten(0, 1))
    return Memory(written.unflatten(0, memory.shape[:2]), total.add_(key.sum(-2)), level)


def read(state: Memory, query: Tensor, features: FeatureMap | None = None, floor: float = 0.0) -> tuple[Tensor, Tensor]:
    """Output B H T E and denominator B H T for queries B H T N (features) or B H T D (vectors), in O(T N E) time.

    The denominator is the estimate before `floor`.
    """
    if fits_step(features, query, state.memory, state.total):
        return read_one(state.memory, state.total, query, features, floor)
    query = query if features is None else features(query)[0]
    denominator = _flushed(query @ state.total.unsqueeze(-1))
    return query @ state.memory / _divisor(denominator, floor), denominator.squeeze(-1)


def pairs_cost_less(queries: int, keys: int, features: int, value_dim: int) -> bool:
    """Whether `read_pairs` takes fewer products than `write` and `read`, as it does of short sequences."""
    return queries * keys * (features + value_dim) < (queries + keys) * features * value_dim


def read_pairs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    features: FeatureMap,
    plan: Schedule | None = None,
    weight: Tensor | None = None,
    floor: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """What `read` finds where these keys alone were written, from the products of all pairs, in O(T S (N + E)) time.

    query: B H T D, vectors; key: B H S N, features; value: B H S E; plan and weight, B H S, as `write` takes them.
    Returns output B H T E and denominator B H T, before `floor`, as `read` does.
    """
    products = features(query)[0] @ key.transpose(-1, -2)
    if plan is not None:
        left = (plan.log_decay[..., -1:] - plan.log_decay[..., 1:]).to(key.dtype).exp()
        weight = left if weight is None else weight * left
    if weight is not None:
        products = products * weight.unsqueeze(-2)
    denominator = _flushed(products.sum(-1, keepdim=True))
    return products @ value / _divisor(denominator, floor), denominator.squeeze(-1)


def step(
    state: Memory,
    order: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    plan: Schedule | None = None,
    features: FeatureMap | None = None,
    weight: Tensor | None = None,
    floor: float = 0.0,
) -> tuple[Tensor, Tensor, Memory]:
    """`write` of one key into rows `order` (B long; None: all) of the memory, then `read` for one query.

    Arguments as theirs, with S = T = 1; output B H 1 E, denominator B H 1 and the memory.  Compiled kernels choose,
    write and read in one pass.
    """
    memory, total, level = state
    log_decay, found = None if plan is None else plan.log_decay, None
    given, known = (key, value, weight, log_decay), (query, key, value, memory, total, weight)
    if takes_step(features, *known, log_decay=log_decay):
        from seqstruct.ops.memory.triton_steps import step_linear

        found = step_linear(memory, total, order, query, *given, features, floor)
    elif fits_step(features, *known, log_decay=log_decay):
        found = write_and_read(memory, total, order, query, given, features, floor)
    if found is not None:
        *reading, memory, total = found
        level = level if order is None else level.index_select(0, order)
        return *reading, Memory(memory, total, level if plan is None else plan.level)
    if order is not None:
        state = Memory(*(x.index_select(0, order) for x in state))
    state = write(state, key, value, plan, features, weight)
    return *read(state, query, features, floor), state


def causal_linear_attention(
    state: Memory,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    plan: Schedule | None = None,
    features: FeatureMap | None = None,
    weight: Tensor | None = None,
    floor: float = 0.0,
) -> tuple[Tensor, Tensor, Memory]:
    """Write each key, then read for its query: output B H T E, denominator B H T (no gradient), memory at the end.

    query, key: B H T N features, or B H T D vectors that a chunked map makes features of; value: B H T E; weight:
    B H T, factors of the keys' features (which contain the plan's), or None; all of the memory's dtype, but that on
    CUDA devices query, key and value may be bfloat16, as the output is then.
    In chunks of CHUNK: O(T (CHUNK + N) E) time; O(T (N + E) + T/CHUNK N E) memory with the backward pass, N being D
    where a map is given.  The backward pass is written by hand and recomputes features and what is quadratic in a
    chunk.  Differentiable once.
    """
    heads = query.shape[:2]
    scale = 1.0 if features is None else features.scale
    tensors = [x.flatten(0, 1).contiguous() for x in (query, key, value, state.memory / scale, state.total / scale)]
    weight = None if weight is None else weight.flatten(0, 1)
    log_decay = None if plan is None else plan.log_decay.flatten(0, 1)
    parameters = () if features is None else features.parameters(heads[0])
    tensors += [weight, log_decay, features, floor / scale**2, *parameters]
    if takes(*tensors[:6], *parameters):
        from seqstruct.ops.memory.triton import triton_linear_attention as function
    elif usable(*tensors[:6], *parameters):
        function = compiled_linear_attention
    else:
        function = _causal_linear_attention
    output, denominator, memory, total = function(*tensors)
    level = state.level if plan is None else plan.level
    final = Memory(memory.unflatten(0, heads) * scale, total.unflatten(0, heads) * scale, level)
    return output.unflatten(0, heads), denominator.unflatten(0, heads) * scale**2, final


def _causal_linear_attention(*inputs: Any) -> tuple[Tensor, ...]:
    """As `_CausalLinearAttention`, of which it takes the arguments."""
    if not torch.compiler.is_compiling():
        return _CausalLinearAttention.apply(*inputs)
    *tensors, features, floor = inputs[:9]
    rows, bias = [*inputs[9:], None, None][:2]
    return _in_chunks(*tensors, *kind_of(features), float(floor), rows, bias)


@opaque(
    lambda query, key, value, memory, total, *_: (
        value.new_empty(value.shape), value.new_empty(value.shape[:2]), *(x.new_empty(x.shape) for x in (memory, total))
    )
)
def _in_chunks(
    query: Tensor, key: Tensor, value: Tensor, memory: Tensor, total: Tensor, weight: Tensor | None,
    log_decay: Tensor | None, kind: int, normed: bool, floor: float, rows: Tensor | None, bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    features, parameters = chunked_map(kind, normed), [x for x in (rows, bias) if x is not None]
    return _CausalLinearAttention.apply(
        query, key, value, memory, total, weight, log_decay, features, floor, *parameters
    )


def _flushed(x: Tensor) -> Tensor:
    """x, and 0 where it is so small that it has lost digits."""
    limits = torch.finfo(x.dtype)
    return x.masked_fill(x.abs() < limits.tiny / limits.eps, 0.0)


def _divisor(x: Tensor, floor: float) -> Tensor:
    """x, or the floor where x is below it; without a floor infinity where x is 0."""
    return x.clamp(min=floor) if floor else x.masked_fill(x == 0, math.inf)


class _Decays(NamedTuple):
    """Decays inside a chunk: pair G T T (zero for s > t), begin G T 1 from its start, end G T 1 to its end, whole."""

    pair: Tensor
    begin: Tensor
    end: Tensor
    whole: Tensor


def _decays(log_decay: Tensor, start: int, stop: int, dtype: torch.dtype) -> _Decays:
    before, inside = log_decay[:, start, None], log_decay[:, start + 1 : stop + 1]
    # Differences of logarithms that may be in the thousands: double precision for them alone.
    pair = (inside.unsqueeze(2) - inside.unsqueeze(1)).to(dtype).clamp_(max=0.0).exp_().tril_()
    begin = (inside - before).to(dtype).exp_()
    end = (inside[:, -1:] - inside).to(dtype).exp_()
    return _Decays(pair, begin.unsqueeze(2), end.unsqueeze(2), begin[:, -1:].unsqueeze(2))


class _CausalLinearAttention(torch.autograd.Function):
    """G is B and H merged: query, key G T D; value G T E; memory G N E; total G N; weight G T; log_decay G T+1."""

    @staticmethod
    def forward(ctx, query, key, value, memory, total, weight, log_decay, features, floor, *parameters):
        length, recorded = query.size(1), any(ctx.needs_input_grad)
        total = total.unsqueeze(1)  # G 1 N
        output, denominator = torch.empty_like(value), value.new_empty(*value.shape[:2], 1)
        memories, totals = [memory], [total]
        for start in range(0, length, CHUNK):
            now = slice(start, min(start + CHUNK, length))
            v = value[:, now]
            q, k = _features(features, query[:, now], parameters)[0], _features(features, key[:, now], parameters)[0]
            if weight is not None:
                k = k * weight[:, now, None]
            scores = torch.bmm(q, k.transpose(1, 2))
            if log_decay is None:
                scores.tril_()
            else:
                decays = _decays(log_decay, now.start, now.stop, q.dtype)
                scores *= decays.pair
                q, k = q * decays.begin, k * decays.end
                decayed = memory * decays.whole, total * decays.whole
            den = _flushed(scores.sum(2, keepdim=True).baddbmm_(q, total.transpose(1, 2)))
            denominator[:, now] = den
            torch.div(torch.bmm(scores, v).baddbmm_(q, memory), _divisor(den, floor), out=output[:, now])
            before = (memory, total) if log_decay is None else decayed
            memory = torch.baddbmm(before[0], k.transpose(1, 2), v)
            total = before[1] + k.sum(1, keepdim=True)
            memories.append(memory)
            totals.append(total)
            if not recorded:
                memories, totals = memories[-1:], totals[-1:]
        ctx.features, ctx.floor, ctx.parameters, ctx.states = features, floor, len(parameters), len(memories)
        if recorded:
            ctx.save_for_backward(
                query, key, value, weight, log_decay, output, denominator, *parameters, *memories, *totals
            )
        denominator = denominator.squeeze(2)
        ctx.mark_non_differentiable(denominator)
        return output, denominator, memory, total.squeeze(1)

    @staticmethod
    @first_derivatives_only
    def backward(ctx, d_output, _, d_memory, d_total):
        query, key, value, weight, log_decay, output, denominator, *rest = ctx.saved_tensors
        parameters, rest = rest[: ctx.parameters], rest[ctx.parameters :]
        memories, totals = rest[: ctx.states], rest[ctx.states :]
        gradients = [torch.zeros_like(x) for x in parameters]
        d_query, d_key, d_value = (torch.empty_like(x) for x in (query, key, value))
        d_weight = query.new_empty(query.shape[:2]) if ctx.needs_input_grad[5] or log_decay is not None else None
        d_memory, d_total = d_memory.clone(), d_total.unsqueeze(1).clone()
        decayed = log_decay is not None
        d_last = (d_memory * memories[-1]).sum((1, 2)) + (d_total * totals[-1]).sum((1, 2)) if decayed else None
        for chunk in reversed(range(ctx.states - 1)):
            now = slice(chunk * CHUNK, min((chunk + 1) * CHUNK, query.size(1)))
            memory, total, v = memories[chunk], totals[chunk], value[:, now]
            (q, q_saved), (k, k_saved) = (_features(ctx.features, x[:, now], parameters) for x in (query, key))
            plain = k
            if weight is not None:
                k = k * weight[:, now, None]
            d_num = d_output[:, now] / _divisor(denominator[:, now], ctx.floor)
            d_den = (d_num * output[:, now]).sum(2, keepdim=True).neg_()
            if ctx.floor:
                d_den.masked_fill_(denominator[:, now] < ctx.floor, 0.0)
            scores = torch.bmm(q, k.transpose(1, 2))
            d_scores = torch.bmm(d_num, v.transpose(1, 2)).add_(d_den)
            dq = torch.bmm(d_num, memory.transpose(1, 2)).baddbmm_(d_den, total)
            dk = torch.bmm(v, d_memory.transpose(1, 2)).add_(d_total)
            begun, ended = q, k
            if decayed:
                decays = _decays(log_decay, now.start, now.stop, q.dtype)
                scores *= decays.pair
                d_scores *= decays.pair
                dq *= decays.begin
                dk *= decays.end
                begun, ended = q * decays.begin, k * decays.end
            else:
                scores.tril_()
                d_scores.tril_()
            dq.baddbmm_(d_scores, k)
            dk.baddbmm_(d_scores.transpose(1, 2), q)
            d_value[:, now] = torch.bmm(scores.transpose(1, 2), d_num).baddbmm_(ended, d_memory)
            if decayed:
                d_memory *= decays.whole
                d_total *= decays.whole
            d_memory.baddbmm_(begun.transpose(1, 2), d_num)
            d_total.baddbmm_(d_den.transpose(1, 2), begun)
            if d_weight is not None:
                d_weight[:, now] = (dk * plain).sum(2)
            if weight is not None:
                dk *= weight[:, now, None]
            for store, d, phi, saved in ((d_query, dq, q, q_saved), (d_key, dk, plain, k_saved)):
                if ctx.features is not None:
                    d = ctx.features.chunk_backward(d, phi, saved, gradients, *parameters)
                store[:, now] = d
        d_decay = None
        if decayed:
            d_first = (d_memory * memories[0]).sum((1, 2)) + (d_total * totals[0]).sum((1, 2))
            d_keys = d_weight if weight is None else d_weight * weight
            d_decay = decay_gradient(d_first, d_last, d_keys, d_output, output, denominator.squeeze(2), ctx.floor)
        d_weight = d_weight if ctx.needs_input_grad[5] else None
        return d_query, d_key, d_value, d_memory, d_total.squeeze(1), d_weight, d_decay, None, None, *gradients


def _features(
    features: FeatureMap | None, x: Tensor, parameters: Sequence[Tensor]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    return (x, ()) if features is None else features.chunk(x, *parameters)
