"""Sigmoid attention: each key is attended to or not, independently (Kim et al. 2017, sec. 2 and 3.1).

The weight of a key is p(z_s = 1) = sigmoid(q . k_s / sqrt(D) + bias): a linear-chain CRF over selections without
pairwise potentials.  O(T S C) time, O(S C) state.
Deviations: scaled products as the score, where the source has a bilinear form (`segmentation(pairwise=False,
normalize=False)`); many heads; weights are not normalised over keys, so a negative `bias` (about -log S) keeps outputs
small for long inputs.
"""

from __future__ import annotations

from torch import Tensor

from seqstruct.attention.base import Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.softmax.base import DotProductAttention
from seqstruct.ops.softmax import sigmoid_weights


@register_attention("sigmoid", sites=Site)
class SigmoidAttention(DotProductAttention):
    """Independent selection of keys."""

    rotates = True
    holds_groups = True

    class Config(Options):
        bias: float = option(0.0)  # added to each score, in nats (log-odds); any finite number

    def weights(self, query: Tensor, key: Tensor, visible: Tensor | None) -> Tensor:
        """B H T S, each from 0 to 1, with any sum."""
        return sigmoid_weights(query, key, visible, self.config.bias)
