"""Scaled dot-product attention with many heads (Vaswani et al. 2017, eq. 1): what every other mechanism is beside.

O(T S C) time, O(S C) state.  Computes what fairseq's own attention computes, and takes its parameters as they are.
Deviation: a query with nothing to attend to gets zeros, where fairseq's gives NaN.
"""

from __future__ import annotations

from torch import Tensor

from seqstruct.attention.base import Site
from seqstruct.attention.registry import register_attention
from seqstruct.attention.softmax.base import DotProductAttention
from seqstruct.ops.softmax import softmax_attention, softmax_weights


@register_attention("softmax", sites=Site)
class SoftmaxAttention(DotProductAttention):
    """Softmax over all visible keys."""

    rotates = True
    holds_groups = True

    def weights(self, query: Tensor, key: Tensor, visible: Tensor | None) -> Tensor:
        return softmax_weights(query, key, visible)

    def context(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None, causal: bool) -> Tensor:
        """B H T D by the fused kernel."""
        return softmax_attention(query, key, value, visible, causal, self.dropout_rate)
