"""Softmax, dot products and scores of attention (Vaswani et al. 2017, sec. 3.2.1; Kim et al. 2017, sec. 2; Bahdanau et
al. 2015; Luong et al. 2015, sec. 3).

    masked_softmax     softmax of what is not padding; it stands wherever weights over masked scores are needed
    softmax_weights, sigmoid_weights, weighted_values, softmax_attention     by scaled dot products
    by_angle    vectors over their norms
    additive_scores    by a layer of tanh units
    within_window, gaussian     of alignment models that look at a part of the source

Of dot products, query: B H T D; key: B H S D; value: B H S E; visible: bool, broadcastable to B H T S, True where a
query may look, or None if it may look everywhere.  A query that sees nothing gets zeros.  O(B H T S (D + E)) time,
O(B H T S) memory.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.dropout import drop, dropped_attention, kernel_drops
from seqstruct.ops.first_derivatives import first_derivatives_only


def masked_softmax(scores: Tensor, padding: Tensor | None) -> Tensor:
    """Softmax over the last axis of what is not padding (bool, True = padding, broadcast to the shape; None: nothing).

    Zeros at padding, and in rows that are padding throughout.
    """
    if padding is None:
        return scores.softmax(-1)
    return scores.masked_fill(padding, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(padding, 0.0)


def softmax_weights(query: Tensor, key: Tensor, visible: Tensor | None = None, factor: Tensor | None = None) -> Tensor:
    """B H T S, float32 at least: softmax over keys of the scaled products; rows that see nothing are zero.

    factor: B H T S, of the products, or None.
    """
    scores = scaled_scores(query, key)
    if factor is not None:
        scores = scores * factor.to(scores.dtype)
    return masked_softmax(scores, None if visible is None else ~visible)


def sigmoid_weights(query: Tensor, key: Tensor, visible: Tensor | None = None, bias: float = 0.0) -> Tensor:
    """B H T S, float32 at least: the logistic function of each scaled product plus `bias`, keys independent."""
    weights = (scaled_scores(query, key) + bias).sigmoid()
    return weights if visible is None else weights.masked_fill(~visible, 0.0)


def weighted_values(weights: Tensor, value: Tensor, dropout: float = 0.0) -> Tensor:
    """B H T E: values summed by weights, of which a share `dropout` is dropped first (pass 0 in evaluation)."""
    weights = weights.to(value.dtype)
    return (drop(weights, dropout) if dropout else weights) @ value


def softmax_attention(
    query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None = None, causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """B H T E by PyTorch's fused kernel, on CPUs with dropout by ours, which has first derivatives only.

    `causal` (T = S, no `visible`) hides keys s > t without a mask in memory.  Keys and values may have fewer heads,
    each for as many of the queries' in a row.
    """
    if causal and visible is not None:
        raise ValueError("softmax_attention: causal=True stands alone; put causality into `visible` otherwise")
    if kernel_drops(dropout, query, key, value):
        return dropped_attention(query, key, value, visible, causal, dropout)
    groups = {"enable_gqa": True} if query.size(1) != key.size(1) else {}
    if visible is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=causal, **groups)
    blind = ~visible.any(-1, keepdim=True)
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=visible | blind, dropout_p=dropout, **groups)
    return output.masked_fill(blind, 0.0)


def scaled_scores(query: Tensor, key: Tensor) -> Tensor:
    """B H T S, float32 at least: products of queries and keys, divided by sqrt(D)."""
    scores = (query * query.size(-1) ** -0.5) @ key.transpose(-1, -2)
    return scores if scores.dtype == torch.float64 else scores.float()


def by_angle(x: Tensor) -> Tensor:
    """x over its Euclidean norm along the last axis; zeros stay zeros, in float16 too, which has no 1e-12."""
    return F.normalize(x, dim=-1, eps=max(1e-12, torch.finfo(x.dtype).tiny))


def within_window(center: Tensor, index: Tensor, half_width: int) -> Tensor:
    """B T S bool: whether key positions B S lie within half_width of the centers B T, the ends included."""
    return (index[:, None] - center[:, :, None]).abs() <= half_width


def gaussian(center: Tensor, index: Tensor, deviation: float) -> Tensor:
    """B T S: exp(-(index - center)^2 / (2 deviation^2)) for key positions B S and centers B T."""
    return (-(index[:, None] - center[:, :, None]).square() / (2 * deviation**2)).exp()


def additive_scores(left: Tensor, right: Tensor, weight: Tensor) -> Tensor:
    """B N M, [b, i, j] = weight . tanh(left_i + right_j) (Bahdanau et al. 2015), for left B N C, right B M C, weight C.

    All of one floating type; first derivatives only.
    O(B N M C) time and memory; the derivatives take few passes over what is kept.
    Raises ValueError if the shapes or types do not fit.
    """
    fits = left.dim() == right.dim() == 3 and left.size(0) == right.size(0)
    if not fits or left.size(2) != right.size(2) or weight.shape != left.shape[2:]:
        shapes = ", ".join(str(tuple(x.shape)) for x in (left, right, weight))
        raise ValueError(f"expected left B N C, right B M C and weight C, got {shapes}")
    if not left.dtype == right.dtype == weight.dtype:
        raise ValueError(f"expected one type, got {left.dtype}, {right.dtype} and {weight.dtype}")
    with torch.autocast(left.device.type, enabled=False):
        return _AdditiveScores.apply(left, right, weight)


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left: Tensor, right: Tensor, weight: Tensor) -> Tensor:
        units = (left.unsqueeze(2) + right.unsqueeze(1)).tanh_()  # B N M C
        ctx.save_for_backward(units, weight)
        return units @ weight

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        units, weight = ctx.saved_tensors
        of_weight = grad.flatten() @ units.flatten(0, 2)
        slope_lost = units.square().mul_(grad.unsqueeze(3))  # the slope of tanh is 1 minus its square
        of_left, of_right = ((grad.sum(d).unsqueeze(2) - slope_lost.sum(d)) * weight for d in (2, 1))
        return of_left, of_right, of_weight
