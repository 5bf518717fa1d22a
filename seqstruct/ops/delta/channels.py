"""Decays of channels inside of a chunk: sums over pairs of rows whose decays differ from channel to channel.

    products(x, y)[t, s] = sum_d x_td y_sd e^(g_s+1,d + ... + g_td),     sums(w, y)_td = sum_s w_ts y_sd e^(...)

over s <= t.  A chunk is halved again and again: pairs of which t is in the second half of a block and s in the first
meet in the block's middle, x decayed from there and y to there, in one product of matrices (Yang et al. 2024, "Gated
linear attention transformers", sec. 4.3, with two levels).  All exponents are sums of g, 0 at most, so nothing
overflows and no digits are lost in differences.

Each is the other's derivative; that for g is the sum over t >= j of x_t dx_t - y_t dy_t.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only

Levels = list[tuple[Tensor, Tensor]]


def levels(log_decay: Tensor) -> Levels:
    """For blocks of 2, 4, ... R rows, e^ the sums of log_decay ... R K, without gradient, R a power of two:

    from the block's middle to each row of its second half, and from each row of the first to the middle, ... n R/2n K.
    """
    found = []
    with torch.no_grad():
        for half in (2**i for i in range(log_decay.size(-2).bit_length() - 1)):
            first, second = _halves(log_decay, half)
            found.append((second.cumsum(-2).exp(), after(first).exp()))
    return found


def after(log_decay: Tensor) -> Tensor:
    """Of each row the sum of log_decay ... R K over the rows after it."""
    return F.pad(log_decay[..., 1:, :], (0, 0, 0, 1)).flip(-2).cumsum(-2).flip(-2)


def products(x: Tensor, y: Tensor, log_decay: Tensor, factors: Levels | None) -> Tensor:
    """... R R for x, y, log_decay: ... R K, with the factors of `levels`, or None for kernels on a CUDA device.

    O(R^2 K) time; differentiable once.
    """
    return _Products.apply(x, y, log_decay, factors)


def sums(weights: Tensor, y: Tensor, log_decay: Tensor, factors: Levels | None) -> Tensor:
    """... R K for weights: ... R R, of which those with s > t do not count, and y, log_decay: ... R K; as above."""
    return _Sums.apply(weights, y, log_decay, factors)


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, log_decay: Tensor, factors: Levels | None) -> Tensor:
        ctx.factors = factors
        ctx.save_for_backward(x, y, log_decay if factors is None else None)
        return _products(x, y, log_decay, factors)

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, d_products: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, y, log_decay = ctx.saved_tensors
        dx = _sums(d_products, y, log_decay, ctx.factors)
        dy = _sums(d_products, x, log_decay, ctx.factors, back=True)
        return dx, dy, _decay_gradient(x * dx, y * dy), None


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, y: Tensor, log_decay: Tensor, factors: Levels | None) -> Tensor:
        ctx.factors = factors
        result = _sums(weights, y, log_decay, factors)
        ctx.save_for_backward(weights, y, log_decay if factors is None else None, result)
        return result

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, d_sums: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        weights, y, log_decay, result = ctx.saved_tensors
        dy = _sums(weights, d_sums, log_decay, ctx.factors, back=True)
        return _products(d_sums, y, log_decay, ctx.factors), dy, _decay_gradient(result * d_sums, y * dy), None


def _products(x: Tensor, y: Tensor, log_decay: Tensor | None, factors: Levels | None) -> Tensor:
    if factors is None:
        from seqstruct.ops.delta.triton import triton_products

        return triton_products(x, y, log_decay)
    result = torch.diag_embed((x * y).sum(-1))
    for later, earlier in factors:
        second, first = _halves(x, later.size(-2))[1] * later, _halves(y, later.size(-2))[0] * earlier
        _below(result, later.size(-2)).copy_(second @ first.mT)
    return result


def _sums(
    weights: Tensor, y: Tensor, log_decay: Tensor | None, factors: Levels | None, back: bool = False
) -> Tensor:
    """... R K: the sum over s <= t of weights[t, s] y_s, decayed from s to t; back: over t >= s, of y_t."""
    if factors is None:
        from seqstruct.ops.delta.triton import triton_sums

        return triton_sums(weights, y, log_decay, back=back)
    result = weights.diagonal(dim1=-2, dim2=-1).unsqueeze(-1) * y
    for later, earlier in factors:
        half = later.size(-2)
        below = _below(weights, half)
        given, taken, met = (earlier, later, below.mT) if back else (later, earlier, below)
        _halves(result, half)[not back].addcmul_(given, met @ (_halves(y, half)[back] * taken))
    return result


def _decay_gradient(gained: Tensor, lost: Tensor) -> Tensor:
    """From what decays up to each row add to the result, and what those before it take away."""
    return (gained - lost).flip(-2).cumsum(-2).flip(-2)


def _halves(x: Tensor, half: int) -> tuple[Tensor, Tensor]:
    """Views ... n half K of the first and second halves of blocks of x: ... R K."""
    first, second = x.unflatten(-2, (-1, 2, half)).unbind(-3)
    return first, second


def _below(x: Tensor, half: int) -> Tensor:
    """View ... n half half of x: ... R R, the pairs of a block's second half with its first."""
    blocks = x.unflatten(-1, (-1, 2, half)).unflatten(-4, (-1, 2, half))[..., :, 1, :, :, 0, :]
    return blocks.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)
