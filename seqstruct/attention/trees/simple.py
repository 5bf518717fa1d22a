"""Simple self-attention: a softmax over all tokens as parents, without trees (Kim et al. 2017, sec. 4.1 and A.1, A.2).

The output of token j is c_j = sum_i softmax_i(theta_ij) x_i, with the scores of `dependency` (appendix A.1); i = j is
among the sum, as written there.  O(B S^2 (score_size + C)) time, O(B S^2 score_size) memory.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.registry import register_attention
from seqstruct.attention.trees.arc_scorer import ArcScorer, ScorerOptions
from seqstruct.attention.trees.base import ArcAttention
from seqstruct.ops.rows import Rows
from seqstruct.ops.softmax import masked_softmax


@register_attention("simple", sites={Site.ENCODER_SELF})
class SimpleAttention(ArcAttention):
    """The baseline of `dependency`."""

    Config = ScorerOptions

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.scorer = ArcScorer(shape.key_dim, config.hidden_size, config.score_size, config.bounded, root=False)

    def attend(
        self, key: Tensor, value: Tensor, rows: Rows, given: Any, need_heads: bool
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        scores = self.scorer(key, rows).transpose(1, 2)  # B S S, [b, token, parent]
        padding = None if rows.real is None else ~(rows.real.unsqueeze(2) & rows.real.unsqueeze(1))
        weights = masked_softmax(scores, padding)
        return weights, self.sum_values(weights, value), {}
