"""The superposition stack's steps on CUDA devices, all of a sequence in one kernel: the loops of `superposition.stack`.

A program has a row of the batch and BM numbers of its stack vectors, and takes one step after the other, BR rows of the
stack at a time, through the buffers that are described there.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from seqstruct.ops.gpu import power

ROWS = 64  # BR at most


def triton_forward(buffer: Tensor, weights: Tensor, pushed: Tensor, start: int, truncated: bool) -> Tensor:
    """Fill all slabs, T+1 B rows m or two that take turns, but the first; returns the readings B T m.

    weights: T B 3; pushed: B T m; start: height of the first stack; truncated: whether rows that no reading can reach
    are left out.
    """
    (B, T, m), slabs = pushed.shape, buffer.size(0)
    readings = torch.empty_like(pushed)
    block = power(m, 32)
    _forward[B, triton.cdiv(m, block)](
        buffer, weights, pushed, readings, T, start, B, slabs, buffer.size(2), m,
        TRUNCATED=truncated, BR=power(buffer.size(2), ROWS), BM=block, num_stages=1,
    )
    return readings


def triton_backward(adjoint: Tensor, weights: Tensor, d_readings: Tensor, start: int, truncated: bool) -> None:
    """Fill the slabs of adjoints, T+1 B rows m, from the last; d_readings: B T m, but for the last added to them."""
    B, T, m = d_readings.shape
    block = power(m, 32)
    _backward[B, triton.cdiv(m, block)](
        adjoint, weights, d_readings, T, start, B, adjoint.size(2), m,
        TRUNCATED=truncated, BR=power(adjoint.size(2), ROWS), BM=block, num_stages=1,
    )


@triton.jit
def _height(t, start, T, TRUNCATED: tl.constexpr):
    """Rows of the stack that are computed after t steps."""
    if TRUNCATED:
        return tl.minimum(start + t, T + 1 - t)
    else:
        return start + t


@triton.jit
def _forward(
    buffer, weights, pushed, readings, T, start, B, slabs, rows, m,
    TRUNCATED: tl.constexpr, BR: tl.constexpr, BM: tl.constexpr,
):
    b, columns = tl.program_id(0).to(tl.int64), tl.program_id(1) * BM + tl.arange(0, BM)
    for t in range(0, T):
        push = tl.load(weights + (t * B + b) * 3)
        pop = tl.load(weights + (t * B + b) * 3 + 1)
        noop = tl.load(weights + (t * B + b) * 3 + 2)
        height = _height(t + 1, start, T, TRUNCATED)
        now = buffer + ((t % slabs) * B + b) * rows * m
        after = buffer + (((t + 1) % slabs) * B + b) * rows * m
        for block in range(0, height, BR):
            row = block + tl.arange(0, BR)
            there = (row < height)[:, None] & (columns < m)[None, :]
            place, top = row[:, None] * m + columns[None, :], there & (row == 0)[:, None]
            at = (b * T + t) * m + columns[None, :] + 0 * row[:, None]
            above = tl.load(now + place, there & (row > 0)[:, None], 0.0) + tl.load(pushed + at, top, 0.0)
            moved = push * above + noop * tl.load(now + place + m, there, 0.0)
            moved += pop * tl.load(now + place + 2 * m, there, 0.0)
            tl.store(after + place + m, moved, there)
            tl.store(readings + at, moved, top)
        tl.debug_barrier()


@triton.jit
def _backward(
    adjoint, weights, d_readings, T, start, B, rows, m, TRUNCATED: tl.constexpr, BR: tl.constexpr, BM: tl.constexpr
):
    b, columns = tl.program_id(0).to(tl.int64), tl.program_id(1) * BM + tl.arange(0, BM)
    for i in range(0, T):
        t = T - 1 - i  # from step t + 1 to the stack before it
        push = tl.load(weights + (t * B + b) * 3)
        pop = tl.load(weights + (t * B + b) * 3 + 1)
        noop = tl.load(weights + (t * B + b) * 3 + 2)
        height = _height(t, start, T, TRUNCATED)
        later = adjoint + ((t + 1) * B + b) * rows * m
        before = adjoint + (t * B + b) * rows * m
        for block in range(0, height, BR):
            row = block + tl.arange(0, BR)
            there = (row < height)[:, None] & (columns < m)[None, :]
            place = row[:, None] * m + columns[None, :]
            moved = pop * tl.load(later + place + m, there, 0.0) + noop * tl.load(later + place + 2 * m, there, 0.0)
            moved += push * tl.load(later + place + 3 * m, there, 0.0)
            top = there & ((row < 1) & (row < t))[:, None]
            at = (b * T + tl.maximum(t - 1, 0)) * m + columns[None, :] + 0 * row[:, None]
            tl.store(before + place + 2 * m, moved + tl.load(d_readings + at, top, 0.0), there)
        tl.debug_barrier()
