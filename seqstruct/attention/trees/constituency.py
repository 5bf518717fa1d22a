"""Attention along constituents under a distribution over binary trees (Kim et al. 2017, sec. 3; Stern et al. 2017).

A token attends to the spans that it is in.  As structured attention with the binary trees of spans as structures, which
are scored span by span:

    p(tree) ~ exp( sum_{(a, b) in tree} theta_ab ),    w_ij ~ sum_{a <= i, j <= b} p((a, b) in tree) / (b - a + 1)

so that each span divides its attention evenly among its tokens; single tokens are spans, and weights of a token sum to
1.  theta is scored as the arcs of `dependency` are, of the first and the last token of a span, and the values are
summed as they are; the query plays no part.  The probabilities are those of `seqstruct.distributions.ConstituencyTree`.
O(B S^3) time, O(B S^2 score_size) memory.
Deviation: the source has no such trees; its section 3 says how any structure makes a layer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.registry import register_attention
from seqstruct.attention.trees.arc_scorer import ArcScorer, ScorerOptions
from seqstruct.attention.trees.base import ArcAttention
from seqstruct.distributions import ConstituencyTree
from seqstruct.ops.opaque import opaque
from seqstruct.ops.rows import Rows


@register_attention("constituency", sites={Site.ENCODER_SELF})
class ConstituencyAttention(ArcAttention):
    """The expected mean of the constituents around each token.

    A reading has in `extra`: marginals B S S, the probability that the span from token i to token j is in the tree,
    and, where weights are asked for in evaluation, spans B S S, those of the most probable tree, 0 or 1.
    """

    Config = ScorerOptions

    def __init__(self, config: Config, shape: Shape):
        """Raises ValueError if value_dim is not embed_dim."""
        super().__init__(config, shape)
        self.scorer = ArcScorer(shape.key_dim, config.hidden_size, config.score_size, config.bounded, root=False)

    def attend(
        self, key: Tensor, value: Tensor, rows: Rows, given: Any, need_heads: bool
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """As `ArcAttention`.  Raises ValueError on a score that is NaN."""
        lengths = rows.lengths(len(key), key.size(1), key.device)
        scores = self.scorer(key, rows)
        spans = _spans(scores, lengths, False)  # B S S
        weights = around(spans)
        extra = {"marginals": rows.back(spans, 1, 2)}
        if need_heads:
            extra["spans"] = rows.back(_spans(scores, lengths, True), 1, 2)
        weights = weights.to(value.dtype)
        return weights, self.sum_values(weights, value), extra


@opaque(lambda scores, *_: scores.new_empty(scores.shape))
def _spans(scores: Tensor, lengths: Tensor, best: bool) -> Tensor:
    """B S S: probabilities of spans, or 1 in the best tree."""
    trees = ConstituencyTree(scores.unsqueeze(3), lengths=lengths)
    return (trees.argmax() if best else trees.marginals()).squeeze(3)


def around(spans: Tensor) -> Tensor:
    """w of the module's equation, B S S, from probabilities of spans; 0 where a token is in none."""
    position = torch.arange(spans.size(1), device=spans.device)
    width = (position - position[:, None] + 1).clamp(min=1)

    def containing(x: Tensor) -> Tensor:  # [i, j], i <= j: the sum over spans from i or before to j or after
        return x.cumsum(1).flip(2).cumsum(2).flip(2)

    shared = containing(spans / width).triu()
    shared = shared + shared.triu(1).transpose(1, 2)
    counts = containing(spans).diagonal(0, 1, 2).unsqueeze(2)
    return shared / counts.masked_fill(counts == 0, 1.0)
