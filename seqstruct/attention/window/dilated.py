"""Dilated-window attention (Beltagy et al. 2020; Peng 2022, sec. 5.3.6 and eq. 5.8): every other token near the query.

At a decoder query t attends to tokens t, t - d, ..., t - (n - 1) d for a dilation d, 2 in equation 5.8.  At an encoder
the window is two-sided, as in the paper: t, n // 2 tokens on its left and n - 1 - n // 2 on its right, d apart.
O(T n C) time, O(n d C) state (O(S C) at an encoder), n the number of slots.
"""

from __future__ import annotations

from seqstruct.attention.base import Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.window.base import WindowAttention


@register_attention("dilated_window", sites={Site.ENCODER_SELF, Site.DECODER_SELF})
class DilatedWindowAttention(WindowAttention):
    """Tokens some steps apart."""

    class Config(Options):
        slots: int = option(32, least=1)  # n, tokens in the window
        dilation: int = option(2, least=1)  # d, steps from one token of the window to the next
        empty_slots: bool = False  # whether slots beyond either end take part in the softmax

    @property
    def dilation(self) -> int:
        return self.config.dilation
