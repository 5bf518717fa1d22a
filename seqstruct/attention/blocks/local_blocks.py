"""Attention inside blocks of tokens (the local attention of Tay et al. 2021): a token sees its own block alone.

O(T size C) time.  An encoder's attention.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.attention.base import Site
from seqstruct.attention.blocks.base import BlockAttention
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.memory import Layout, block_sparse_attention


@register_attention("local_blocks", sites={Site.ENCODER_SELF})
class LocalBlockAttention(BlockAttention):
    """No block sees another."""

    rotates = True

    class Config(Options):
        size: int = option(64, least=1)  # tokens of a block

    def attend(self, query: Tensor, key: Tensor, value: Tensor, place: Layout, x: Tensor) -> Tensor:
        own = torch.eye(query.size(2), dtype=torch.bool, device=query.device).expand(query.size(0), -1, -1)
        return block_sparse_attention(query, key, value, place.real, own, most=1)
