"""One step of decoding on CUDA devices: write one key, then read for one query, in one kernel for each memory.

A program has one memory, of one row and head, and goes through BN of its features or slots at a time.  ORDERED: rows
of the old memory are chosen by `order`; otherwise the memory is written in place.
"""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from seqstruct.ops.gpu import power
from seqstruct.ops.memory.compiled_linear_attention import places
from seqstruct.ops.memory.feature_maps import ProjectedMap, project, unit_norm
from seqstruct.ops.memory.triton import LEAST, features_of

PART = 32  # BN at most


def step_linear(
    memory: Tensor, total: Tensor, order: Tensor | None, query: Tensor, key: Tensor, value: Tensor,
    weight: Tensor | None, log_decay: Tensor | None, features: Any, floor: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Arguments and results as those of `compiled_linear_attention.write_and_read`."""
    kind, scale = (0, 1.0) if features is None else (features.kind, features.scale)
    if isinstance(features, ProjectedMap):
        rows, *bias = features.by_head()
        query, key = (project(unit_norm(x) if features.normed else x, rows) for x in (query, key))
        query, key = (x + bias[0] if bias else x for x in (query, key))
    (B, H, _, M), (N, E) = query.shape, memory.shape[2:]
    old, ends, order = places((memory, total), order)
    output, denominator = value.new_empty(B, H, 1, E), memory.new_empty(B, H, 1)
    rest = (None if x is None else x.contiguous() for x in (weight, log_decay))
    _linear[B * H,](
        *(ends if order is None else old), order, query.contiguous(), key.contiguous(), value.contiguous(), *rest,
        *ends, output, denominator, scale, floor, H,
        N=N, M=M, E=E, KIND=kind, WEIGHTED=weight is not None, DECAYED=log_decay is not None, FLOORED=floor > 0,
        TINY=LEAST, ORDERED=order is not None, BN=power(N, PART), BE=power(E),
    )
    return output, denominator, *ends


def step_bounded(
    memory: tuple[Tensor, ...], order: Tensor | None, query: Tensor, key: Tensor, value: Tensor, control: Tensor,
    means: bool, empty: bool,
) -> tuple[Tensor, ...]:
    """Arguments and results as those of `compiled_bounded_memory.write_and_read`."""
    (B, H, _, D), N, E = query.shape, control.size(3), value.size(3)
    old, ends, order = places(memory, order)
    output = value.new_empty(B, H, 1, E)
    given = (x.contiguous() for x in (query, key, value, control))
    _bounded[B * H,](
        *(ends if order is None else old), order, *given, *ends, output, D**-0.5, H,
        N=N, D=D, E=E, MEANS=means, EMPTY=empty, ORDERED=order is not None, BN=power(N, PART), BD=power(D),
        BE=power(E),
    )
    return output, *ends


@triton.jit
def _source(order, H, ORDERED: tl.constexpr):
    """Which row and head of the old memory this program has."""
    at = tl.program_id(0).to(tl.int64)
    if ORDERED:
        return tl.load(order + at // H) * H + at % H
    else:
        return at


@triton.jit
def _linear(
    memory, total, order, query, key, value, weight, decay, new_memory, new_total, output, denominator, scale, floor, H,
    N: tl.constexpr, M: tl.constexpr, E: tl.constexpr, KIND: tl.constexpr, WEIGHTED: tl.constexpr,
    DECAYED: tl.constexpr, FLOORED: tl.constexpr, TINY: tl.constexpr, ORDERED: tl.constexpr, BN: tl.constexpr,
    BE: tl.constexpr,
):
    g, old, width, first = tl.program_id(0).to(tl.int64), _source(order, H, ORDERED), tl.arange(0, BE), tl.arange(0, 1)
    v = tl.load(value + g * E + width, width < E, 0.0).to(tl.float32)
    read, below = tl.zeros((BE,), tl.float32), tl.zeros((1,), tl.float32)
    factor, kept = scale, 1.0
    if WEIGHTED:
        factor = scale * tl.load(weight + g)
    if DECAYED:
        kept = tl.exp((tl.load(decay + 2 * g + 1) - tl.load(decay + 2 * g)).to(tl.float32))
    for block in range(0, N, BN):
        columns = block + tl.arange(0, BN)
        phi = tl.sum(features_of(key, g, first, columns, 1, N, M, KIND), 0) * factor
        asked = tl.sum(features_of(query, g, first, columns, 1, N, M, KIND), 0) * scale
        there, place = (columns < N)[:, None] & (width < E)[None, :], columns[:, None] * E + width[None, :]
        held = kept * tl.load(memory + old * N * E + place, there, 0.0) + phi[:, None] * v[None, :]
        summed = kept * tl.load(total + old * N + columns, columns < N, 0.0) + phi
        tl.store(new_memory + g * N * E + place, held, there)
        tl.store(new_total + g * N + columns, summed, columns < N)
        read += tl.sum(asked[:, None] * held, 0)
        below += tl.sum(asked * summed, 0)
    below = tl.where(tl.abs(below) < TINY, 0.0, below)
    divisor = below
    if FLOORED:
        divisor = tl.maximum(below, floor)
    read = tl.where(divisor == 0.0, 0.0, read / tl.where(divisor == 0.0, 1.0, divisor))
    tl.store(output + g * E + width, read.to(output.dtype.element_ty), width < E)
    tl.store(denominator + g + first, below)


@triton.jit
def _bounded(
    keys, values, totals, order, query, key, value, control, new_keys, new_values, new_totals, output, scale, H,
    N: tl.constexpr, D: tl.constexpr, E: tl.constexpr, MEANS: tl.constexpr, EMPTY: tl.constexpr,
    ORDERED: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
):
    g, old = tl.program_id(0).to(tl.int64), _source(order, H, ORDERED)
    channels, width = tl.arange(0, BD), tl.arange(0, BE)
    q = tl.load(query + g * D + channels, channels < D, 0.0).to(tl.float32)
    k = tl.load(key + g * D + channels, channels < D, 0.0).to(tl.float32)
    v = tl.load(value + g * E + width, width < E, 0.0).to(tl.float32)
    most, divisor = tl.full((1,), -3e38, tl.float32), tl.zeros((1,), tl.float32)
    read = tl.zeros((BE,), tl.float32)
    for block in range(0, N, BN):
        slots = block + tl.arange(0, BN)
        by_key, by_value = slots[:, None] * D + channels[None, :], slots[:, None] * E + width[None, :]
        in_key = (slots < N)[:, None] & (channels < D)[None, :]
        in_value = (slots < N)[:, None] & (width < E)[None, :]
        log_total = tl.load(totals + old * N + slots, slots < N, -1e30)
        entering = tl.load(control + g * N + slots, slots < N, 0.0).to(tl.float32)
        held = tl.load(keys + old * N * D + by_key, in_key, 0.0)
        holding = tl.load(values + old * N * E + by_value, in_value, 0.0)
        if MEANS:
            larger = tl.maximum(log_total, entering)
            before = log_total
            log_total = larger + tl.log(tl.exp(before - larger) + tl.exp(entering - larger))
            entering = tl.exp(entering - log_total)
            held += (k[None, :] - held) * entering[:, None]
            holding += (v[None, :] - holding) * entering[:, None]
        else:
            held += k[None, :] * entering[:, None]
            holding += v[None, :] * entering[:, None]
            log_total = tl.where(entering != 0.0, 0.0, log_total)
        tl.store(new_keys + g * N * D + by_key, held, in_key)
        tl.store(new_values + g * N * E + by_value, holding, in_value)
        tl.store(new_totals + g * N + slots, log_total, slots < N)
        logits = tl.sum(held * q[None, :], 1) * scale
        if not EMPTY:
            logits = tl.where(log_total == -1e30, -1e30, logits)
        logits = tl.where(slots < N, logits, -3e38)
        highest = tl.maximum(most, tl.max(logits, 0))
        shares, left = tl.exp(logits - highest), tl.exp(most - highest)
        divisor = divisor * left + tl.sum(shares, 0)
        read = read * left + tl.sum(shares[:, None] * holding, 0)
        most = highest
    tl.store(output + g * E + width, (read / divisor).to(output.dtype.element_ty), width < E)
