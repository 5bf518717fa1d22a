"""Causal attention through a memory of features on CUDA devices: what `linear_attention` computes chunk by chunk.

Three passes: memories before each chunk, one program for a part of a memory and a group of B and H; then all chunks at
once; and for the derivative the adjoints of memories from the last chunk back, then all chunks at once.  Letters as
there, C steps of a chunk; BN, BE parts of N and E that a program holds.  KIND is that of the feature map, of which the
product with its vectors is made before: N features of M numbers, N = 2M for sines and cosines.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.gpu import power, precision
from seqstruct.ops.memory.compiled_linear_attention import decay_gradient
from seqstruct.ops.memory.feature_maps import ProjectedMap, unit_norm

CHUNK = 64  # C
LEAST = torch.finfo(torch.float32).tiny / torch.finfo(torch.float32).eps  # denominators below it have lost digits
QUARTER = tl.constexpr(math.pi / 2)  # what a sine is behind the cosine


def triton_linear_attention(
    query: Tensor, key: Tensor, value: Tensor, memory: Tensor, total: Tensor, weight: Tensor | None,
    log_decay: Tensor | None, features: Any, floor: float, *parameters: Tensor,
) -> tuple[Tensor, ...]:
    """As `_CausalLinearAttention`, of which it takes the arguments; query, key and value may be bfloat16.

    O(T (N + E) + T/C N E) memory with the backward pass.
    """
    kind = 0 if features is None else features.kind
    if isinstance(features, ProjectedMap):
        query, key, rows, *bias = (x.float() for x in (query, key, *parameters))  # arguments of sines keep their digits
        query, key = (unit_norm(x) if features.normed else x for x in (query, key))
        query, key = (torch.bmm(x, rows.transpose(1, 2)) for x in (query, key))
        query, key = (x + bias[0] if bias else x for x in (query, key))
    return _Attend.apply(query, key, value, memory, total, weight, log_decay, kind, floor)


@triton.jit
def features_of(x, g, rows, columns, T, N: tl.constexpr, M: tl.constexpr, KIND: tl.constexpr):
    """Features of some rows, 0 where there are none; x: G T M."""
    there = (rows < T)[:, None] & (columns < N)[None, :]
    found = tl.load(x + (g * T + rows)[:, None] * M + (columns % M)[None, :], there, 0.0).to(tl.float32)
    if KIND == 1:
        found = tl.exp(tl.minimum(found, 0.0)) + tl.maximum(found, 0.0)
    elif KIND == 2:
        found = tl.cos(found - tl.where(columns < M, QUARTER, 0.0)[None, :])
    elif KIND == 3:
        found = tl.maximum(found, 0.0)
    return tl.where(there, found, 0.0)


@triton.jit
def _slopes(x, g, rows, columns, T, N: tl.constexpr, M: tl.constexpr, KIND: tl.constexpr):
    """Derivatives of the features by the numbers that they are made of."""
    there = (rows < T)[:, None] & (columns < N)[None, :]
    found = tl.load(x + (g * T + rows)[:, None] * M + (columns % M)[None, :], there, 0.0).to(tl.float32)
    if KIND == 1:
        return tl.exp(tl.minimum(found, 0.0))
    elif KIND == 2:
        return -tl.sin(found - tl.where(columns < M, QUARTER, 0.0)[None, :])
    elif KIND == 3:
        return tl.where(found > 0.0, 1.0, 0.0)
    else:
        return tl.full(found.shape, 1.0, tl.float32)


@triton.jit
def _part(x, first, rows, columns, T, E: tl.constexpr):
    """Rows of x: .. T E from row `first` of all on, 0 where there are none."""
    there = (rows < T)[:, None] & (columns < E)[None, :]
    return tl.load(x + (first + rows)[:, None] * E + columns[None, :], there, 0.0).to(tl.float32)


@triton.jit
def _decays(decay, g, rows, start, end, T, UNTIL: tl.constexpr):
    """For each row the decay up to it from `start`, or with UNTIL from it to `end`; decay: G T+1."""
    line = decay + g * (T + 1)
    here = tl.load(line + tl.minimum(rows + 1, T))
    if UNTIL:
        return tl.exp((tl.load(line + end) - here).to(tl.float32))
    else:
        return tl.exp((here - tl.load(line + start)).to(tl.float32))


@triton.jit
def _seen(scores, decay, g, rows, T, DECAYED: tl.constexpr):
    """Scores C C times the decays from column to row, 0 where the column is later."""
    if DECAYED:
        at = decay + g * (T + 1) + tl.minimum(rows + 1, T)
        apart = (tl.load(at)[:, None] - tl.load(at)[None, :]).to(tl.float32)
        scores *= tl.exp(tl.minimum(apart, 0.0))
    return tl.where(rows[:, None] >= rows[None, :], scores, 0.0)


@triton.jit
def _memories(
    x, y, factor, weight, decay, memory, total, memories, totals, T, chunks,
    N: tl.constexpr, M: tl.constexpr, E: tl.constexpr, KIND: tl.constexpr, WEIGHTED: tl.constexpr,
    DECAYED: tl.constexpr, BACK: tl.constexpr, C: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Memories before each chunk and after all, G chunks+1 N E, with their totals; x: keys, y: values.

    BACK: adjoints of the memories after each chunk, from the last back, and last that of the first memory; x: queries,
    y: adjoints of numerators, factor: of denominators.
    """
    g = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    width = tl.program_id(2) * BE + tl.arange(0, BE)
    place = columns[:, None] * E + width[None, :]
    inside, once = (columns < N)[:, None] & (width < E)[None, :], columns < tl.where(tl.program_id(2) == 0, N, 0)
    held = tl.load(memory + g * N * E + place, inside, 0.0)
    summed = tl.load(total + g * N + columns, columns < N, 0.0)
    for i in range(0, chunks):
        chunk = i
        if BACK:
            chunk = chunks - 1 - i
        at = g * (chunks + 1) + chunk
        tl.store(memories + at * N * E + place, held, inside)
        tl.store(totals + at * N + columns, summed, once)
        start = chunk * C
        end = tl.minimum(start + C, T)
        rows = start + tl.arange(0, C)
        phi = features_of(x, g, rows, columns, T, N, M, KIND)
        if WEIGHTED:
            phi *= tl.load(weight + g * T + rows, rows < T, 0.0)[:, None]
        if DECAYED:
            phi *= _decays(decay, g, rows, start, end, T, not BACK)[:, None]
            line = decay + g * (T + 1)
            whole = tl.exp((tl.load(line + end) - tl.load(line + start)).to(tl.float32))
            held *= whole
            summed *= whole
        held += tl.dot(tl.trans(phi), _part(y, g * T, rows, width, T, E), input_precision=PRECISION)
        if BACK:
            phi *= tl.load(factor + g * T + rows, rows < T, 0.0)[:, None]
        summed += tl.sum(phi, 0)
    at = g * (chunks + 1) + chunks
    tl.store(memories + at * N * E + place, held, inside)
    tl.store(totals + at * N + columns, summed, once)


@triton.jit
def _read(
    query, key, value, weight, decay, memories, totals, output, denominator, floor, T, chunks,
    N: tl.constexpr, M: tl.constexpr, E: tl.constexpr, KIND: tl.constexpr, WEIGHTED: tl.constexpr,
    DECAYED: tl.constexpr, FLOORED: tl.constexpr, TINY: tl.constexpr, C: tl.constexpr, BN: tl.constexpr,
    BE: tl.constexpr, PRECISION: tl.constexpr,
):
    """Output and denominator of one chunk."""
    g = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    width = tl.program_id(2) * BE + tl.arange(0, BE)
    rows, at = chunk * C + tl.arange(0, C), g * (chunks + 1) + chunk
    scores, read = tl.zeros((C, C), tl.float32), tl.zeros((C, BE), tl.float32)
    below = tl.zeros((C,), tl.float32)
    for block in range(0, N, BN):
        columns = block + tl.arange(0, BN)
        q = features_of(query, g, rows, columns, T, N, M, KIND)
        k = features_of(key, g, rows, columns, T, N, M, KIND)
        if WEIGHTED:
            k *= tl.load(weight + g * T + rows, rows < T, 0.0)[:, None]
        scores += tl.dot(q, tl.trans(k), input_precision=PRECISION)
        read += tl.dot(q, _part(memories, at * N, columns, width, N, E), input_precision=PRECISION)
        below += tl.sum(q * tl.load(totals + at * N + columns, columns < N, 0.0)[None, :], 1)
    if DECAYED:
        begun = _decays(decay, g, rows, chunk * C, T, T, False)
        read *= begun[:, None]
        below *= begun
    scores = _seen(scores, decay, g, rows, T, DECAYED)
    below += tl.sum(scores, 1)
    below = tl.where(tl.abs(below) < TINY, 0.0, below)
    read += tl.dot(scores, _part(value, g * T, rows, width, T, E), input_precision=PRECISION)
    if FLOORED:
        read /= tl.maximum(below, floor)[:, None]
    else:
        read = tl.where((below == 0.0)[:, None], 0.0, read / tl.where(below == 0.0, 1.0, below)[:, None])
    there = (rows < T)[:, None] & (width < E)[None, :]
    tl.store(output + (g * T + rows)[:, None] * E + width[None, :], read, there)
    tl.store(denominator + g * T + rows, below, rows < tl.where(tl.program_id(2) == 0, T, 0))


@triton.jit
def _keys_back(
    query, key, value, weight, decay, memories, totals, d_memories, d_totals, d_above, d_below, d_query, d_key,
    d_weight, T, chunks,
    N: tl.constexpr, M: tl.constexpr, E: tl.constexpr, KIND: tl.constexpr, WEIGHTED: tl.constexpr,
    DECAYED: tl.constexpr, C: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, PRECISION: tl.constexpr,
):
    """Gradients of what queries and keys are made of, one number a feature, and of the keys' weights (G N/BN T)."""
    g = tl.program_id(0).to(tl.int64)
    chunk, part = tl.program_id(1), tl.program_id(2)
    columns, rows = part * BN + tl.arange(0, BN), chunk * C + tl.arange(0, C)
    at = g * (chunks + 1) + chunk
    d_scores = tl.zeros((C, C), tl.float32)
    dq, dk = tl.zeros((C, BN), tl.float32), tl.zeros((C, BN), tl.float32)
    for block in range(0, E, BE):
        width = block + tl.arange(0, BE)
        above, v = _part(d_above, g * T, rows, width, T, E), _part(value, g * T, rows, width, T, E)
        d_scores += tl.dot(above, tl.trans(v), input_precision=PRECISION)
        dq += tl.dot(above, tl.trans(_part(memories, at * N, columns, width, N, E)), input_precision=PRECISION)
        dk += tl.dot(v, tl.trans(_part(d_memories, at * N, columns, width, N, E)), input_precision=PRECISION)
    below = tl.load(d_below + g * T + rows, rows < T, 0.0)
    d_scores += below[:, None]
    dq += below[:, None] * tl.load(totals + at * N + columns, columns < N, 0.0)[None, :]
    dk += tl.load(d_totals + at * N + columns, columns < N, 0.0)[None, :]
    if DECAYED:
        dq *= _decays(decay, g, rows, chunk * C, T, T, False)[:, None]
        dk *= _decays(decay, g, rows, 0, tl.minimum(chunk * C + C, T), T, True)[:, None]
    d_scores = _seen(d_scores, decay, g, rows, T, DECAYED)
    q = features_of(query, g, rows, columns, T, N, M, KIND)
    k = features_of(key, g, rows, columns, T, N, M, KIND)
    weighted = k
    if WEIGHTED:
        weighted = k * tl.load(weight + g * T + rows, rows < T, 0.0)[:, None]
    dq += tl.dot(d_scores, weighted, input_precision=PRECISION)
    dk += tl.dot(tl.trans(d_scores), q, input_precision=PRECISION)
    if WEIGHTED or DECAYED:
        tl.store(d_weight + (g * tl.num_programs(2) + part) * T + rows, tl.sum(dk * k, 1), rows < T)
    if WEIGHTED:
        dk *= tl.load(weight + g * T + rows, rows < T, 0.0)[:, None]
    dq *= _slopes(query, g, rows, columns, T, N, M, KIND)
    dk *= _slopes(key, g, rows, columns, T, N, M, KIND)
    there, place = (rows < T)[:, None] & (columns < N)[None, :], (g * T + rows)[:, None] * N + columns[None, :]
    tl.store(d_query + place, dq.to(d_query.dtype.element_ty), there)
    tl.store(d_key + place, dk.to(d_key.dtype.element_ty), there)


@triton.jit
def _values_back(
    query, key, weight, decay, d_memories, d_above, d_value, T, chunks,
    N: tl.constexpr, M: tl.constexpr, E: tl.constexpr, KIND: tl.constexpr, WEIGHTED: tl.constexpr,
    DECAYED: tl.constexpr, C: tl.constexpr, BN: tl.constexpr, BE: tl.constexpr, PRECISION: tl.constexpr,
):
    """Gradients of the values."""
    g = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    width, rows = tl.program_id(2) * BE + tl.arange(0, BE), chunk * C + tl.arange(0, C)
    back = g * (chunks + 1) + chunk
    scores, dv = tl.zeros((C, C), tl.float32), tl.zeros((C, BE), tl.float32)
    for block in range(0, N, BN):
        columns = block + tl.arange(0, BN)
        q = features_of(query, g, rows, columns, T, N, M, KIND)
        k = features_of(key, g, rows, columns, T, N, M, KIND)
        if WEIGHTED:
            k *= tl.load(weight + g * T + rows, rows < T, 0.0)[:, None]
        scores += tl.dot(q, tl.trans(k), input_precision=PRECISION)
        dv += tl.dot(k, _part(d_memories, back * N, columns, width, N, E), input_precision=PRECISION)
    if DECAYED:
        dv *= _decays(decay, g, rows, 0, tl.minimum(chunk * C + C, T), T, True)[:, None]
    scores = _seen(scores, decay, g, rows, T, DECAYED)
    dv += tl.dot(tl.trans(scores), _part(d_above, g * T, rows, width, T, E), input_precision=PRECISION)
    there = (rows < T)[:, None] & (width < E)[None, :]
    tl.store(d_value + (g * T + rows)[:, None] * E + width[None, :], dv.to(d_value.dtype.element_ty), there)


class _Attend(torch.autograd.Function):
    """Arguments as those of `_CausalLinearAttention`, queries and keys as `features_of` takes them."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, memory: Tensor, total: Tensor, weight: Tensor | None,
        log_decay: Tensor | None, kind: int, floor: float,
    ) -> tuple[Tensor, ...]:
        query, key, value, memory, total = (x.contiguous() for x in (query, key, value, memory, total))
        weight, log_decay = (None if x is None else x.contiguous() for x in (weight, log_decay))
        (groups, length, width), (features, size) = query.shape, memory.shape[1:]
        mode = precision(value)
        sizes = {
            "N": features, "M": width, "E": size, "KIND": kind, "WEIGHTED": weight is not None,
            "DECAYED": log_decay is not None, "C": CHUNK, "PRECISION": mode,
        }
        chunks = triton.cdiv(length, CHUNK)
        memories = memory.new_empty(groups, chunks + 1, features, size)
        totals = memory.new_empty(groups, chunks + 1, features)
        small, wide = _tiles(features, size, 32), _tiles(features, size, 64)
        grid = groups, triton.cdiv(features, small["BN"]), triton.cdiv(size, small["BE"])
        _memories[grid](
            key, value, None, weight, log_decay, memory, total, memories, totals, length, chunks, BACK=False,
            **sizes, **small,
        )
        output, denominator = memory.new_empty(value.shape), memory.new_empty(groups, length)
        _read[groups, chunks, triton.cdiv(size, wide["BE"])](
            query, key, value, weight, log_decay, memories, totals, output, denominator, floor, length, chunks,
            FLOORED=floor > 0, TINY=LEAST, **sizes, **wide,
        )
        ctx.sizes, ctx.floor, ctx.chunks = sizes, floor, chunks
        ctx.save_for_backward(query, key, value, weight, log_decay, output, denominator, memories, totals)
        ctx.mark_non_differentiable(denominator)
        return output.to(value.dtype), denominator, memories[:, chunks].clone(), totals[:, chunks].clone()

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, d_output: Tensor, _: Tensor, d_memory: Tensor, d_total: Tensor) -> tuple[Any, ...]:
        query, key, value, weight, log_decay, output, denominator, memories, totals = ctx.saved_tensors
        (groups, length, _), (features, size) = query.shape, memories.shape[2:]
        sizes, chunks, floor = ctx.sizes, ctx.chunks, ctx.floor
        small, wide = _tiles(features, size, 32), _tiles(features, size, 64)
        divisor = denominator.clamp(min=floor) if floor else denominator.masked_fill(denominator == 0, torch.inf)
        d_above = (d_output / divisor.unsqueeze(2)).contiguous()
        d_below = -(d_above * output).sum(2)
        if floor:
            d_below = d_below.masked_fill(denominator < floor, 0.0)
        d_memories, d_totals = torch.empty_like(memories), torch.empty_like(totals)
        grid = groups, triton.cdiv(features, small["BN"]), triton.cdiv(size, small["BE"])
        _memories[grid](
            query, d_above, d_below, None, log_decay, d_memory.contiguous(), d_total.contiguous(), d_memories,
            d_totals, length, chunks, BACK=True, **sizes | {"WEIGHTED": False}, **small,
        )
        d_query, d_key = (x.new_empty(groups, length, features) for x in (query, key))
        parts = triton.cdiv(features, wide["BN"])
        d_weight = memories.new_empty(groups, parts, length)
        _keys_back[groups, chunks, parts](
            query, key, value, weight, log_decay, memories, totals, d_memories, d_totals, d_above, d_below, d_query,
            d_key, d_weight, length, chunks, **sizes, **wide,
        )
        d_value = torch.empty_like(value)
        _values_back[groups, chunks, triton.cdiv(size, wide["BE"])](
            query, key, weight, log_decay, d_memories, d_above, d_value, length, chunks, **sizes, **wide
        )
        if features > query.size(2):  # sines and cosines of the same numbers
            d_query, d_key = (x.unflatten(2, (2, -1)).sum(2) for x in (d_query, d_key))
        d_first, d_first_total = d_memories[:, chunks], d_totals[:, chunks]
        d_decay = None
        if weight is not None or log_decay is not None:
            d_weight = d_weight.sum(1)
        if log_decay is not None:
            ends = ((memories[:, 0], d_first), (totals[:, 0], d_first_total)), (
                (memories[:, chunks], d_memory), (totals[:, chunks], d_total)
            )
            edges = (sum((x * dx).flatten(1).sum(1) for x, dx in pairs) for pairs in ends)
            d_keys = d_weight if weight is None else d_weight * weight
            d_decay = decay_gradient(*edges, d_keys, d_output, output, denominator, floor)
        d_weight = d_weight if weight is not None else None
        return d_query, d_key, d_value, d_first, d_first_total, d_weight, d_decay, None, None


def _tiles(features: int, size: int, most: int) -> dict[str, int]:
    return {"BN": power(features, most), "BE": power(size, most)}
