"""Sinusoidal positions as in the Transformer's paper: interleaved and counted from 0.

fairseq's own put all sines before all cosines, count from padding_idx + 1 and stretch the wavelengths by
(D/2)/(D/2 - 1).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from seqstruct.ops.masking import positions


class InterleavedSinusoidalPositions(nn.Module):
    """pe[p, 2i] = sin(p 10000^(-2i/D)), pe[p, 2i+1] = cos of the same (Vaswani et al. 2017, sec. 3.5)."""

    def __init__(self, max_positions: int, embed_dim: int, padding_idx: int):
        """Raises ValueError if embed_dim is odd."""
        super().__init__()
        if embed_dim % 2:
            raise ValueError(f"interleaved sinusoidal positions need an even size, not {embed_dim}")
        self.max_positions = max_positions
        self.padding_idx = padding_idx
        rate = torch.exp(torch.arange(0, embed_dim, 2, dtype=torch.float64) * (-math.log(10000.0) / embed_dim))
        angle = torch.arange(max_positions, dtype=torch.float64)[:, None] * rate
        table = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
        self.register_buffer("table", table.to(torch.get_default_dtype()), persistent=False)

    def forward(self, tokens: Tensor, incremental_state: Any = None) -> Tensor:
        """Positions B T D of tokens B T; the last alone, B 1 D, in incremental decoding.

        A token's position is the number of real tokens before it.  Raises ValueError past max_positions.
        """
        index = positions(tokens.eq(self.padding_idx))
        if tokens.size(1) > self.max_positions and int(index.max()) >= self.max_positions:
            raise ValueError(f"a sequence of {tokens.size(1)} tokens: the model has {self.max_positions} positions")
        return self.table[index[:, -1:] if incremental_state is not None else index]
