"""Hard parents: the output of a token is its parent in the tree of an external parser (Kim et al. 2017, sec. 4.4).

The heads come to `forward` as `carry`, and are handed on to the next layer: B S long, the number of each word's head as
in CoNLL-U, words counted from 1 and 0 the root, ignored at padding and at a root token.  O(B S^2 C) time, O(B S^2)
memory; there are no parameters but the value of the root.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqstruct.attention.base import Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.trees.base import RowTrees, TreeAttention
from seqstruct.attention.trees.dependency import word_heads
from seqstruct.ops.rows import Rows

WITHOUT_HEADS = ("refuse", "chain")


@register_attention("hard_parents", sites={Site.ENCODER_SELF})
class HardParentsAttention(TreeAttention):
    """The given parent of each token."""

    class Config(Options):
        without_heads: str = option("refuse", among=WITHOUT_HEADS)  # chain: where no heads are given, the token before
        root_token: bool = False  # the first token of each sentence is the root symbol

    def trees(self, key: Tensor, rows: Rows, given: Any, need_heads: bool) -> RowTrees:
        """The given trees.  Raises ValueError without heads, on others than B S, and if one is no word of its row."""
        n = key.size(1) - self.config.root_token
        if given is not None:
            heads = word_heads(given, key.shape[:2], rows, self.config.root_token)
        elif self.config.without_heads == "chain":
            heads = torch.arange(n, device=key.device).expand(len(key), n)
        else:
            raise ValueError(f"{self.name} needs the heads of an external parser; this batch has none")
        chosen = (heads.unsqueeze(2) == torch.arange(n + 1, device=heads.device)).to(key.dtype)  # B n n+1
        parents = pad(chosen, (0, 0, 1, 0)).transpose(1, 2)  # B n+1 n+1
        padding_mask = self.words(rows)
        if padding_mask is not None:
            parents = parents.masked_fill(pad(padding_mask, (1, 0)).unsqueeze(1), 0.0)
            heads = heads.masked_fill(padding_mask, -1)
        return RowTrees(parents, heads if need_heads else None)
