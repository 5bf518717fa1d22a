"""Sliding-window attention (Beltagy et al. 2020; Peng 2022, sec. 5.3.3): softmax over the n most recent tokens.

The query's own token is one of the n.  The memory is a first-in, first-out queue; at an encoder too it holds tokens to
the left alone.
O(T n C) time, O(n C) state, n the number of slots.
"""

from __future__ import annotations

from dataclasses import dataclass

from seqstruct.attention.base import Site
from seqstruct.attention.option import option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.window import WindowAttention


@register_attention("sliding_window", sites={Site.ENCODER_SELF, Site.DECODER_SELF})
class SlidingWindowAttention(WindowAttention):
    """Adjacent tokens."""

    @dataclass(frozen=True)
    class Config:
        """Options."""

        slots: int = option(32, least=1)  # n, tokens in the window
        empty_slots: bool = False  # whether slots before the first token take part in the softmax
