"""Dot-product attention with softmax or sigmoid weights (Vaswani et al. 2017, sec. 3.2.1; Kim et al. 2017, sec. 2).

query: B H T D; key: B H S D; value: B H S E; visible: bool, broadcastable to B H T S, True where a query may look,
or None if it may look everywhere.  A query that sees nothing gets zeros.  O(B H T S (D + E)) time, O(B H T S) memory.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def softmax_weights(
    query: Tensor, key: Tensor, visible: Tensor | None = None, factor: Tensor | None = None
) -> Tensor:
    """B H T S, float32 at least: softmax over keys of the scaled products; rows that see nothing are zero.

    factor: B H T S, of the products, or None.
    """
    scores = scaled_scores(query, key)
    if factor is not None:
        scores = scores * factor.to(scores.dtype)
    if visible is None:
        return scores.softmax(-1)
    scores = scores.masked_fill(~visible, -math.inf)
    blind = ~visible.any(-1, keepdim=True)
    return scores.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)


def sigmoid_weights(query: Tensor, key: Tensor, visible: Tensor | None = None, bias: float = 0.0) -> Tensor:
    """B H T S, float32 at least: the logistic function of each scaled product plus `bias`, keys independent."""
    weights = (scaled_scores(query, key) + bias).sigmoid()
    return weights if visible is None else weights.masked_fill(~visible, 0.0)


def weighted_values(weights: Tensor, value: Tensor, dropout: float = 0.0) -> Tensor:
    """B H T E: values summed by weights, of which a share `dropout` is dropped first (pass 0 in evaluation)."""
    weights = weights.to(value.dtype)
    return F.dropout(weights, dropout) @ value if dropout else weights @ value


def softmax_attention(
    query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None = None, causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """B H T E by PyTorch's fused kernel; `causal` (T = S, no `visible`) hides keys s > t without a mask in memory."""
    if causal and visible is not None:
        raise ValueError("softmax_attention: causal=True stands alone; put causality into `visible` otherwise")
    if visible is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=causal)
    blind = ~visible.any(-1, keepdim=True)
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=visible | blind, dropout_p=dropout)
    return output.masked_fill(blind, 0.0)


def scaled_scores(query: Tensor, key: Tensor) -> Tensor:
    """B H T S, float32 at least: products of queries and keys, divided by sqrt(D)."""
    scores = (query * query.size(-1) ** -0.5) @ key.transpose(-1, -2)
    return scores if scores.dtype == torch.float64 else scores.float()
