"""Compressive attention by mean pooling (Rae et al. 2020, as read by Peng 2022, sec. 5.3.5 and eq. 5.7).

Token i of the sequence, counting real tokens from 0, adds its share 1/stride to slot i // stride, so that a slot holds
a mean once it is full.  Equation 5.7, not Table 5.1, which lacks the share.
O((T + S) n C) time, O(n C) state, n the number of slots.
Deviations: the most recent slot, not yet full, is attended to as it is; there is no uncompressed part.  A sequence
longer than slots * stride is a ValueError.
"""

from __future__ import annotations

from torch import Tensor

from seqstruct.attention.base import Site
from seqstruct.attention.memory.base import BoundedMemoryAttention, check_length, one_hot
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention


@register_attention("mean_pool", sites=Site)
class MeanPoolAttention(BoundedMemoryAttention):
    """One slot for each run of tokens."""

    positional = True

    class Config(Options):
        slots: int = option(32, least=1)  # n, size of the memory
        stride: int = option(16, least=1)  # c, tokens that share a slot
        empty_slots: bool = False  # whether slots that nothing was written to take part in the softmax

    def control(self, key: Tensor, heads: Tensor, position: Tensor | None) -> Tensor:
        """1/stride in one slot.  Raises ValueError past the last."""
        check_length(self.name, position, self.config.slots * self.config.stride)
        control = one_hot(position // self.config.stride, self.config.slots, heads.dtype) / self.config.stride
        return control.unsqueeze(1).expand(-1, self.shape.num_heads, -1, -1)
