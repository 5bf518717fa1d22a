"""Rotary positions (Su et al. 2021, sec. 3.2.2): pairs of dimensions turn by an angle that grows with the position.

    (x_i, x_{i + D/2}) turns by p base^(-2i/D), i = 0 ... D/2 - 1

Products of a query at p and a key at r then know of positions p - r alone.
Deviation: the paper pairs neighbours; halves, as in GPT-NeoX and in Hugging Face's models, are another order of a
head's dimensions.
"""

from __future__ import annotations

import torch
from torch import Tensor


def rotated(x: Tensor, position: Tensor, base: float) -> Tensor:
    """Heads x: B H T D, turned by their positions: long, B T or 1 T, or B 1 for all of a row.

    Angles are computed in float32 at least.  Raises ValueError if D is odd.  O(B H T D) time.
    """
    size = x.size(-1)
    if size % 2:
        raise ValueError(f"rotary positions turn pairs of dimensions: a head of even size, not {size}")
    dtype = torch.promote_types(x.dtype, torch.float32)
    rate = base ** (torch.arange(0, size, 2, dtype=dtype, device=x.device) / -size)
    angle = position[:, None, :, None] * rate  # B 1 T D/2
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    left, right = x.chunk(2, -1)
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], -1)
