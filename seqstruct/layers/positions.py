"""Positions: sinusoidal as in the Transformer's paper, interleaved and counted from 0, as fairseq has them, or learned.

fairseq's own sinusoids put all sines before all cosines, count from padding_idx + 1 and stretch the wavelengths by
(D/2)/(D/2 - 1).
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.ops.masking import positions


def interleaved_sinusoids(position: Tensor, embed_dim: int) -> Tensor:
    """pe[p, 2i] = sin(p 10000^(-2i/D)), pe[p, 2i+1] = cos of the same, ... D for positions of any shape."""
    rates = torch.arange(0, embed_dim, 2, dtype=torch.float64, device=position.device)
    angle = position.double().unsqueeze(-1) * torch.exp(rates * (-math.log(10000.0) / embed_dim))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2).to(torch.get_default_dtype())


def stacked_sinusoids(position: Tensor, embed_dim: int) -> Tensor:
    """fairseq's, of row `position` of its table: D/2 sines, then as many cosines, then 0 where D is odd."""
    half = embed_dim // 2
    rates = torch.exp(torch.arange(half, device=position.device).float() * -(math.log(10000) / (half - 1)))
    angle = position.float().unsqueeze(-1) * rates
    return F.pad(torch.cat([angle.sin(), angle.cos()], -1), (0, embed_dim % 2))


class InterleavedSinusoidalPositions(nn.Module):
    """pe[p, 2i] = sin(p 10000^(-2i/D)), pe[p, 2i+1] = cos of the same (Vaswani et al. 2017, sec. 3.5)."""

    def __init__(self, max_positions: int, embed_dim: int, padding_idx: int):
        """Raises ValueError if embed_dim is odd."""
        super().__init__()
        if embed_dim % 2:
            raise ValueError(f"interleaved sinusoidal positions need an even size, not {embed_dim}")
        self.max_positions = max_positions
        self.padding_idx = padding_idx
        table = interleaved_sinusoids(torch.arange(max_positions), embed_dim)
        self.register_buffer("table", table, persistent=False)

    def forward(self, tokens: Tensor, incremental_state: Any = None) -> Tensor:
        """Positions B T D of tokens B T; the last alone, B 1 D, in incremental decoding.

        A token's position is the number of real tokens before it.  Raises ValueError past max_positions.
        """
        padding_mask = tokens.eq(self.padding_idx)
        index = positions(padding_mask)
        if tokens.size(1) > self.max_positions:
            index = index.masked_fill(padding_mask, 0)  # padding after all positions are taken needs none
            if bool((index >= self.max_positions).any()):
                raise ValueError(f"a sequence of {tokens.size(1)} tokens: the model has {self.max_positions} positions")
        return self.table[index[:, -1:] if incremental_state is not None else index]


KINDS = ("stacked", "interleaved", "learned")


class Positions(nn.Module):
    """A vector for each position, with the numbers and the parameter of fairseq's modules; no tables are kept.

    kind: "stacked", fairseq's sinusoids, of which there is no end; "interleaved"; or "learned".
    """

    def __init__(self, kind: str, max_positions: int, embed_dim: int, padding_idx: int):
        """Raises ValueError on another kind, and on sizes that have no sinusoids: odd ones where these are interleaved;
        2 and 3 where they are stacked, for which fairseq's formula divides by 0.
        """
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"positions: expected one of {', '.join(KINDS)}, got {kind!r}")
        if kind == "interleaved" and embed_dim % 2:
            raise ValueError(f"interleaved sinusoidal positions need an even size, not {embed_dim}")
        if kind == "stacked" and embed_dim in (2, 3):
            raise ValueError(f"stacked sinusoidal positions need a size of 4 or more, not {embed_dim}")
        self.kind, self.max_positions, self.embed_dim = kind, max_positions, embed_dim
        self.first = padding_idx + 1  # of fairseq's tables
        if kind == "learned":
            self.weight = nn.Parameter(torch.empty(max_positions + self.first, embed_dim))
            nn.init.normal_(self.weight, std=embed_dim**-0.5)

    def forward(self, position: Tensor) -> Tensor:
        """B T D for positions B T, counted from 0.  Raises ValueError past max_positions, where they end."""
        if self.kind == "stacked":
            return stacked_sinusoids(position + self.first, self.embed_dim)
        if position.numel() and int(position.max()) >= self.max_positions:
            raise ValueError(f"position {int(position.max())}: the model has {self.max_positions} positions")
        if self.kind == "interleaved":
            return interleaved_sinusoids(position, self.embed_dim)
        return F.embedding(position + self.first, self.weight)
