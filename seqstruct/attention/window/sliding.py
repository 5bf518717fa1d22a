"""Sliding-window attention (Beltagy et al. 2020; Peng 2022, sec. 5.3.3): softmax over the n tokens next to the query.

At a decoder they are the n most recent, the query's own among them, in a first-in, first-out queue.  At an encoder the
window is two-sided, as in the paper: the query's own, n // 2 on its left and n - 1 - n // 2 on its right.
O(T n C) time, O(n C) state (O(S C) at an encoder), n the number of slots.
"""

from __future__ import annotations

from seqstruct.attention.base import Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.window.base import WindowAttention


@register_attention("sliding_window", sites={Site.ENCODER_SELF, Site.DECODER_SELF})
class SlidingWindowAttention(WindowAttention):
    """Tokens next to each other."""

    class Config(Options):
        slots: int = option(32, least=1)  # n, tokens in the window
        empty_slots: bool = False  # whether slots beyond either end take part in the softmax
