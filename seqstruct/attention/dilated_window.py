"""Dilated-window attention (Beltagy et al. 2020; Peng 2022, sec. 5.3.6 and eq. 5.8): every other of the recent tokens.

Query t attends to tokens t, t - d, ..., t - (n - 1) d for a dilation d, 2 in equation 5.8; at an encoder too to tokens
on the left alone.
O(T n C) time, O(n d C) state, n the number of slots.
"""

from __future__ import annotations

from dataclasses import dataclass

from seqstruct.attention.base import Site
from seqstruct.attention.registry import register_attention
from seqstruct.attention.window import WindowAttention, check_window


@register_attention("dilated_window", sites={Site.ENCODER_SELF, Site.DECODER_SELF})
class DilatedWindowAttention(WindowAttention):
    """Tokens some steps apart."""

    @dataclass(frozen=True)
    class Config:
        """Options."""

        slots: int = 32  # n, tokens in the window; 1 or more
        dilation: int = 2  # d, steps from one token of the window to the next; 1 or more
        empty_slots: bool = False  # whether slots before the first token take part in the softmax

        def __post_init__(self) -> None:
            check_window("dilated_window", self.slots)
            if self.dilation < 1:
                raise ValueError(f"dilated_window: dilation is 1 or more, not {self.dilation}")

    @property
    def dilation(self) -> int:
        """The option of that name."""
        return self.config.dilation
