"""Sparse local-to-global attention (Peng 2022, sec. 5.3.4): all queries attend to the same few tokens, and no others.

Global tokens are chosen by position: the first `slots` of positions 0, `stride`, 2 `stride`, and so on, counting real
tokens.  Each has a slot of its own; other tokens are not stored.
O((T + S) n C) time, O(n C) state, n the number of slots.
"""

from __future__ import annotations

from torch import Tensor

from seqstruct.attention.base import Site
from seqstruct.attention.memory.base import BoundedMemoryAttention, one_hot
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention


@register_attention("local_to_global", sites=Site)
class LocalToGlobalAttention(BoundedMemoryAttention):
    """One slot for each global token."""

    positional = True

    class Config(Options):
        slots: int = option(32, least=1)  # n, global tokens
        stride: int = option(16, least=1)  # tokens from one global token to the next
        empty_slots: bool = False  # whether slots that nothing was written to take part in the softmax

    def control(self, key: Tensor, heads: Tensor, position: Tensor | None) -> Tensor:
        slots, between = position // self.config.stride, position % self.config.stride
        slots = slots.masked_fill(between != 0, self.config.slots)
        control = one_hot(slots, self.config.slots, heads.dtype)
        return control.unsqueeze(1).expand(-1, self.shape.num_heads, -1, -1)
