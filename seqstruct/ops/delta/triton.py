"""What decays and goes from chunk to chunk, on CUDA devices: `chunks.pass_on` and the sums of `channels`.

Letters as there.  A program of `_pass` holds the part of a memory that BV values take; one of `_products` and `_sums` a
chunk, and takes its rows one after another: rows that were there are decayed, so that no decay is a difference.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.gpu import power, precision

VALUES = 32  # BV at most


def triton_pass_on(
    memory: Tensor, key: Tensor, value: Tensor, taken: Tensor | None, whole: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """As `pass_on`, of which it takes the arguments.  Differentiable once."""
    before, last, written = _PassOn.apply(memory, key, value, taken, whole)
    return before, last, value if taken is None else written


def triton_products(x: Tensor, y: Tensor, log_decay: Tensor) -> Tensor:
    """As `channels.products`, without gradient."""
    return _by_chunk(_products, x, y, log_decay, x.new_empty(*x.shape[:-1], x.size(-2)))


def triton_sums(weights: Tensor, y: Tensor, log_decay: Tensor, back: bool = False) -> Tensor:
    """As `channels.sums`, without gradient; `back`: of each row over those after it."""
    return _by_chunk(_sums, weights, y, log_decay, torch.empty_like(y), BACK=back)


@triton.jit
def _part(x, first, rows, columns, R, K: tl.constexpr):
    """R K numbers of x from row `first` on, 0 outside."""
    there = (rows < R)[:, None] & (columns < K)[None, :]
    return tl.load(x + (first + rows)[:, None] * K + columns[None, :], there, 0.0)


@triton.jit
def _decay(whole, at, rows, K: tl.constexpr, DECAYED: tl.constexpr):
    """Of a whole chunk, BK 1; DECAYED: 1 for one number, K for one of each channel."""
    if DECAYED == 1:
        return tl.load(whole + at + 0 * rows)[:, None]
    else:
        return tl.load(whole + at * K + rows, rows < K, 0.0)[:, None]


@triton.jit
def _pass(
    memory, key, value, taken, whole, before, written, last, n,
    R: tl.constexpr, K: tl.constexpr, V: tl.constexpr, TAKEN: tl.constexpr, DECAYED: tl.constexpr,
    BR: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, PRECISION: tl.constexpr,
):
    g = tl.program_id(0).to(tl.int64)
    channels, rows = tl.arange(0, BK), tl.arange(0, BR)
    width = tl.program_id(1) * BV + tl.arange(0, BV)
    place, inside = channels[:, None] * V + width[None, :], (channels < K)[:, None] & (width < V)[None, :]
    there, row = (rows < R)[:, None] & (width < V)[None, :], rows[:, None] * V + width[None, :]
    held = tl.load(memory + g * K * V + place, inside, 0.0)
    for chunk in range(0, n):
        at = g * n + chunk
        tl.store(before + at * K * V + place, held, inside)
        new = _part(value, at * R, rows, width, R, V)
        if TAKEN:
            new -= tl.dot(_part(taken, at * R, rows, channels, R, K), held, input_precision=PRECISION)
            tl.store(written + at * R * V + row, new, there)
        if DECAYED > 0:
            held *= _decay(whole, at, channels, K, DECAYED)
        held += tl.dot(tl.trans(_part(key, at * R, rows, channels, R, K)), new, input_precision=PRECISION)
    tl.store(last + g * K * V + place, held, inside)


@triton.jit
def _pass_back(
    key, taken, whole, d_before, d_written, d_last, after, d_value, d_memory, n,
    R: tl.constexpr, K: tl.constexpr, V: tl.constexpr, TAKEN: tl.constexpr, DECAYED: tl.constexpr,
    BR: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, PRECISION: tl.constexpr,
):
    """after: adjoints of the memories after each chunk, as wide as `before`."""
    g = tl.program_id(0).to(tl.int64)
    channels, rows = tl.arange(0, BK), tl.arange(0, BR)
    width = tl.program_id(1) * BV + tl.arange(0, BV)
    place, inside = channels[:, None] * V + width[None, :], (channels < K)[:, None] & (width < V)[None, :]
    there, row = (rows < R)[:, None] & (width < V)[None, :], rows[:, None] * V + width[None, :]
    held = tl.load(d_last + g * K * V + place, inside, 0.0)
    for i in range(0, n):
        at = g * n + n - 1 - i
        tl.store(after + at * K * V + place, held, inside)
        new = tl.dot(_part(key, at * R, rows, channels, R, K), held, input_precision=PRECISION)
        if TAKEN:
            new += _part(d_written, at * R, rows, width, R, V)
        tl.store(d_value + at * R * V + row, new, there)
        if DECAYED > 0:
            held *= _decay(whole, at, channels, K, DECAYED)
        if TAKEN:
            held -= tl.dot(tl.trans(_part(taken, at * R, rows, channels, R, K)), new, input_precision=PRECISION)
        held += tl.load(d_before + at * K * V + place, inside, 0.0)
    tl.store(d_memory + g * K * V + place, held, inside)


class _PassOn(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, memory: Tensor, key: Tensor, value: Tensor, taken: Tensor | None, whole: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        memory, key, value = (x.contiguous() for x in (memory, key, value))
        taken, whole = (None if x is None else x.contiguous() for x in (taken, whole))
        heads, (n, rows, channels), size = key.shape[:2], key.shape[2:], value.size(-1)
        ctx.sizes = {
            "R": rows, "K": channels, "V": size, "TAKEN": taken is not None,
            "DECAYED": 0 if whole is None else whole.size(3), "BR": power(rows), "BK": power(channels),
            "BV": power(size, VALUES), "PRECISION": precision(value), "num_warps": 8 if channels > 128 else 4,
        }
        before, last = memory.new_empty(*heads, n, channels, size), torch.empty_like(memory)
        written = value if taken is None else torch.empty_like(value)
        _pass[heads.numel(), triton.cdiv(size, ctx.sizes["BV"])](
            memory, key, value, taken, whole, before, written, last, n, **ctx.sizes
        )
        ctx.save_for_backward(key, taken, whole, before, written)
        return before, last, value.new_empty(0) if taken is None else written

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, d_before: Tensor, d_last: Tensor, d_written: Tensor) -> tuple[Tensor | None, ...]:
        key, taken, whole, before, written = ctx.saved_tensors
        d_before, d_last, d_written = (x.contiguous() for x in (d_before, d_last, d_written))
        after, d_value, d_memory = (torch.empty_like(x) for x in (before, written, d_last))
        n, size = before.shape[2], before.size(-1)
        _pass_back[before.shape[:2].numel(), triton.cdiv(size, ctx.sizes["BV"])](
            key, taken, whole, d_before, d_written, d_last, after, d_value, d_memory, n, **ctx.sizes
        )
        d_taken = None if taken is None else -(d_value @ before.mT)
        d_whole = None
        if whole is not None:
            kept = (after * before).sum(-1, keepdim=True)
            d_whole = kept.sum(-2, keepdim=True) if whole.size(3) == 1 else kept
        return d_memory, written @ after.mT, d_value, d_taken, d_whole


@triton.jit
def _products(
    x, y, log_decay, result, R: tl.constexpr, K: tl.constexpr, BR: tl.constexpr, BK: tl.constexpr,
):
    first, rows, columns = tl.program_id(0).to(tl.int64) * R, tl.arange(0, BR), tl.arange(0, BK)
    entering, held = _part(y, first, rows, columns, R, K), tl.zeros((BR, BK), tl.float32)
    for t in range(0, R):
        at = (first + t) * K + columns
        decayed = held * tl.exp(tl.load(log_decay + at, columns < K, 0.0))[None, :]
        held = tl.where((rows == t)[:, None], entering, decayed)
        found = tl.sum(held * tl.load(x + at, columns < K, 0.0)[None, :], 1)
        tl.store(result + (first + t) * R + rows, found, rows < R)


@triton.jit
def _sums(
    weights, y, log_decay, result, R: tl.constexpr, K: tl.constexpr, BR: tl.constexpr, BK: tl.constexpr,
    BACK: tl.constexpr,
):
    first, rows, columns = tl.program_id(0).to(tl.int64) * R, tl.arange(0, BR), tl.arange(0, BK)
    entering, held = _part(y, first, rows, columns, R, K), tl.zeros((BR, BK), tl.float32)
    for i in range(0, R):
        t = i
        gate = i
        weight = weights + (first + t) * R + rows
        if BACK:
            t = R - 1 - i
            gate = tl.minimum(t + 1, R - 1)
            weight = weights + (first + rows) * R + t
        decay = tl.load(log_decay + (first + gate) * K + columns, columns < K, 0.0)
        held = tl.where((rows == t)[:, None], entering, held * tl.exp(decay)[None, :])
        found = tl.sum(held * tl.load(weight, rows < R, 0.0)[:, None], 0)
        tl.store(result + (first + t) * K + columns, found, columns < K)


def _by_chunk(kernel: Any, left: Tensor, y: Tensor, log_decay: Tensor, result: Tensor, **options: bool) -> Tensor:
    """Fill `result`, ... R R or R K, from y: ... R K."""
    rows, channels = y.shape[-2:]
    sizes = {"R": rows, "K": channels, "BR": power(rows), "BK": power(channels)}
    kernel[y.shape[:-2].numel(),](
        left.contiguous(), y.contiguous(), log_decay.contiguous(), result, **sizes, **options,
        num_warps=8 if channels > 128 else 4,
    )
    return result
