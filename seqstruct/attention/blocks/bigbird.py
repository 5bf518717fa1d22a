"""Big Bird (Zaheer et al. 2020, sec. 2 and appendix D): blocks see their neighbours, a few global and random blocks.

The first `global_blocks` blocks see everything and are seen by all.  Every other block sees `window` blocks on either
side, itself, and `random` blocks drawn once for each position of a block and kept in checkpoints, with repetition.
O(T (2 window + 1 + global_blocks + random) size C) time.  An encoder's attention; the global blocks are tokens of the
sequence (the paper's internal construction).
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.blocks.base import BlockAttention
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.memory import Layout, block_sparse_attention

PERIOD = 256  # blocks that random ones are drawn for; then the draw starts again


@register_attention("bigbird", sites={Site.ENCODER_SELF})
class BigBirdAttention(BlockAttention):
    """Window, global and random blocks."""

    rotates = True

    class Config(Options):
        size: int = option(64, least=1)  # tokens of a block
        window: int = option(1, least=0)  # neighbouring blocks seen on either side
        global_blocks: int = option(1, least=0)  # blocks that see and are seen by all, from the first on
        random: int = option(3, least=0)  # blocks seen at random

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.register_buffer("draw", torch.rand(PERIOD, config.random))

    def attend(self, query: Tensor, key: Tensor, value: Tensor, place: Layout, x: Tensor) -> Tensor:
        asked = self.config
        whole, most = min(asked.global_blocks, query.size(2)), 2 * asked.window + 1 + asked.global_blocks + asked.random
        return block_sparse_attention(query, key, value, place.real, self.neighbours(place), whole, most)

    def neighbours(self, place: Layout) -> Tensor:
        """B J J bool: which blocks each block sees."""
        count, blocks = place.real.size(1), place.blocks
        index = torch.arange(count, device=blocks.device)
        near = (index.unsqueeze(1) - index).abs() <= self.config.window
        near = (near | (index < self.config.global_blocks)).repeat(len(blocks), 1, 1)
        drawn = self.draw[index % PERIOD].float()  # J R, of the blocks that the row has
        chosen = (drawn * blocks[:, None, None]).long().clamp(max=count - 1)  # B J R
        return near.scatter(2, chosen, True)
