"""Sinkhorn attention (Tay et al. 2020, "Sparse Sinkhorn Attention"): a block sees itself and a block sorted next to it.

Blocks are summed up by the mean of their inputs; products of two projections of the means give the logits of a soft
permutation of the blocks, one a head, made doubly stochastic by rounds of normalising rows and columns.  The tokens of
block i attend to its own keys and to the permuted keys and values of row i.
O(T size C + T^2/size C) time, of which the second part moves the blocks.  An encoder's attention.
Deviations: logits of pairs of blocks rather than of a fixed number of them, so that lengths may vary; no Gumbel noise.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.blocks.base import BlockAttention
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.memory import Layout, sinkhorn
from seqstruct.ops.softmax import softmax_attention


@register_attention("sinkhorn", sites={Site.ENCODER_SELF})
class SinkhornAttention(BlockAttention):
    """Own block and sorted block."""

    class Config(Options):
        size: int = option(64, least=1)  # tokens of a block
        rounds: int = option(8, least=1)  # of normalising rows and columns
        temperature: float = option(0.75, above=0)  # of the logits, smaller is closer to a permutation

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.sort_query = nn.Linear(shape.embed_dim, shape.embed_dim)
        self.sort_key = nn.Linear(shape.embed_dim, shape.embed_dim)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, place: Layout, x: Tensor) -> Tensor:
        tokens = place.real.sum(2).clamp(min=1).unsqueeze(2)  # B J 1
        means = x.squeeze(1).sum(2) / tokens  # B J C
        first, second = self._heads(self.sort_query(means)), self._heads(self.sort_key(means))
        logits = (first * first.size(-1) ** -0.5) @ second.transpose(-1, -2) / self.config.temperature
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        order = sinkhorn(wide, place.blocks, self.config.rounds).to(key.dtype)  # B H J J
        moved = [torch.einsum("bhij,bhjpd->bhipd", order, y) for y in (key, value)]
        keys, values = (torch.cat([y, z], 3) for y, z in zip((key, value), moved, strict=True))
        anywhere = place.real.any(1, keepdim=True) & place.real.any(2, keepdim=True)  # B J P, what a sorted block has
        visible = torch.cat([place.real, anywhere], 2)[:, None, :, None]
        return softmax_attention(query, keys, values, visible)
