"""Random bounded-memory control, ABC-RD (Peng 2022, sec. 5.5.1): each position has a slot drawn at random.

A slot holds sums, as phi_t = e_i says.  The draw, of one slot for each head and position, is made once and kept in
checkpoints; beyond its last position it starts again.  Positions count real tokens from 0.
O((T + S) n C) time, O(n C) state, n the number of slots.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.memory.base import BoundedMemoryAttention, one_hot
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention


@register_attention("abc_random", sites=Site)
class RandomControlAttention(BoundedMemoryAttention):
    """One random slot a position."""

    positional = True

    class Config(Options):
        slots: int = option(32, least=1)  # n, size of the memory
        period: int = option(1024, least=1)  # positions that slots are drawn for
        empty_slots: bool = False  # whether slots that nothing was written to take part in the softmax

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.register_buffer("draw", torch.randint(config.slots, (shape.num_heads, config.period)))

    def control(self, key: Tensor, heads: Tensor, position: Tensor | None) -> Tensor:
        slots = self.draw[:, position % self.config.period]  # H B S
        return one_hot(slots.transpose(0, 1), self.config.slots, heads.dtype)
