"""Linformer (Wang et al. 2020, as read by Peng 2022, sec. 5.3.1): each position has learned controls of its own.

phi of position i is column i of W, n x `length`, shared by heads and by the layers of a site.  In a decoder the sums go
over the prefix (eq. 5.5).  Positions count real tokens from 0.
O((T + S) n C) time, O(n C) state, n the number of slots.
W begins with a standard deviation of length^-1/2, for sums over all positions: where texts are much shorter than
`length`, memories begin near 0 and are slow to learn.  A sequence longer than `length` is a ValueError.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.memory.base import BoundedMemoryAttention, check_length
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention


class PositionControl(nn.Module):
    """Holds W, a row of n controls for each position."""

    def __init__(self, length: int, slots: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(length, slots) * length**-0.5)


@register_attention("linformer", sites=Site)
class LinformerAttention(BoundedMemoryAttention):
    """Controls by position."""

    positional = True

    class Config(Options):
        slots: int = option(32, least=1)  # n, size of the memory
        length: int = option(1024, least=1)  # N, tokens of the longest sequence
        empty_slots: bool = False  # whether slots that nothing was written to take part in the softmax

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.tied = self.shared(config, shape)

    @classmethod
    def shared(cls, config: Config, shape: Shape) -> PositionControl:
        return PositionControl(config.length, config.slots)

    def control(self, key: Tensor, heads: Tensor, position: Tensor | None) -> Tensor:
        """Columns of W.  Raises ValueError past the last."""
        check_length(self.name, position, self.config.length)
        columns = self.tied.weight.to(heads.dtype)[position]  # B S n
        return columns.unsqueeze(1).expand(-1, self.shape.num_heads, -1, -1)
