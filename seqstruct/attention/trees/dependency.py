"""Syntactic attention: soft parents under a distribution over dependency trees (Kim et al. 2017, sec. 3.2 and A.1).

The output of token j is c_j = sum_i p(z_ij = 1) x_i, z_ij saying that i is the parent of j, under a distribution over
projective trees whose arcs a bidirectional LSTM scores (appendix A.1).  The trees come from the keys, and the values
are summed as they are; the query plays no part (the source has none).  O(B S^3) time, O(B S^2 score_size) memory.
With another `gradient` than marginal the output is the parent itself, in the best tree, and the scorer is trained by a
surrogate (Peng 2022, sec. 2.2; `seqstruct.ops.trees.surrogate`).
Deviations: unless `root_token` says that every sentence starts with the root symbol, as the source's do, a root of its
own stands in front, whose state and value are learned.  The size of s is not given in the source.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.option import option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.trees.arc_scorer import ArcScorer, ScorerOptions
from seqstruct.attention.trees.base import RowTrees, TreeAttention
from seqstruct.ops.masking import fails
from seqstruct.ops.rows import Rows
from seqstruct.ops.trees import GRADIENTS, dependency_argmax, projective_best_tree, projective_log_partition


@register_attention("dependency", sites={Site.ENCODER_SELF})
class DependencyAttention(TreeAttention):
    """The expected parent of each token."""

    class Config(ScorerOptions):
        root_token: bool = False  # the first token of each sentence is the root symbol
        single_root: bool = False  # the root has exactly one dependent
        gradient: str = option("marginal", among=GRADIENTS)  # marginal, or the best tree with the gradient of SPIGOT
        step_size: float = option(1.0, above=0)  # eta of spigot's update and of ste's

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.scorer = ArcScorer(
            shape.key_dim, config.hidden_size, config.score_size, config.bounded, root=not config.root_token
        )

    def trees(self, key: Tensor, rows: Rows, given: Any, need_heads: bool) -> RowTrees:
        """The distribution.  Raises ValueError on a score that is NaN; its place counts real tokens, the root is 0."""
        arcs, padding_mask, single_root = self.scorer(key, rows), self.words(rows), self.config.single_root
        heads = projective_best_tree(arcs, padding_mask, single_root=single_root).heads if need_heads else None
        parents = dependency_argmax(
            arcs, padding_mask, gradient=self.config.gradient, step_size=self.config.step_size, single_root=single_root
        )
        return RowTrees(parents, heads)

    def log_likelihood(self, key: Tensor, heads: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Log-probability of one tree for each row, B, in nats, to train the scorer on a parser's trees.

        key: B S key_dim.  heads: B S long, the number of each word's head as in CoNLL-U, 0 the root; ignored at padding
        and at a root token.  A tree that is not projective has no probability, and what comes out means nothing.
        Raises ValueError if a head is not a word of its row, and on heads of another shape.
        """
        rows = Rows.of(padding_mask, *key.shape[:2])
        chosen = word_heads(heads, key.shape[:2], rows, self.config.root_token)
        if key.size(1) == 0:
            return key.new_zeros(key.size(0))
        tokens, words = rows.to_front(key, 1), self.words(rows)
        arcs = self.scorer(tokens, rows)
        scores = arcs[:, :, 1:].gather(1, chosen.unsqueeze(1)).squeeze(1)  # B n
        if words is not None:
            scores = scores.masked_fill(words, 0.0)
        return scores.sum(1) - projective_log_partition(arcs, words, single_root=self.config.single_root)


def word_heads(heads: Tensor, tokens: torch.Size, rows: Rows, root_token: bool) -> Tensor:
    """B n long, the head of each word, padding last (0 there), from heads B S; tokens: B and S.

    Raises ValueError, naming the place, if a head is neither 0 nor the number of another word of its row.
    """
    if heads.dtype != torch.long or heads.shape != tokens:
        raise ValueError(f"expected heads B S long, {tuple(tokens)}, got {tuple(heads.shape)} {heads.dtype}")
    found = rows.to_front(heads, 1)
    real = torch.ones_like(found, dtype=torch.bool) if rows.real is None else rows.real
    if root_token:
        found, real = found[:, 1:], real[:, 1:]
    number = torch.arange(1, found.size(1) + 1, device=found.device)
    wrong = real & ((found < 0) | (found > real.sum(1, keepdim=True)) | (found == number))
    if fails(wrong, "a head that is no other word of its row"):
        row, word = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"row {row}, word {word + 1} has the head {int(found[row, word])}; expected 0 or the number of another "
            f"of its {int(real[row].sum())} words"
        )
    return found.masked_fill(~real, 0)
