"""Retention (Sun et al. 2023, sec. 2.1 and 2.2): a sum of outer products that decays at fixed rates.

    S_t = g S_{t-1} + k_t v_t^T,   o_t = S_t^T q_t / sqrt(D),   g = 1 - 2^(-5 - h) in head h = 0, 1, ...

Readings are divided by their root mean square in each head and times SiLU of a projection of the query's input.
O(T C D) time, O(C D) state.  Not at cross-attention, where fixed rates would forget a source's beginning.
Deviations: those of the base; no rotation of queries and keys by their positions (xPos); the norm of readings takes no
mean off and has learned factors; the denominators of sec. 2.1, which it cancels, are left out.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention.base import Site
from seqstruct.attention.delta.base import DeltaAttention
from seqstruct.attention.registry import register_attention


@register_attention("retention", sites=(Site.ENCODER_SELF, Site.DECODER_SELF))
class RetentionAttention(DeltaAttention):
    """Decays of the heads without parameters."""

    activated = normed = False
    output_gate = staticmethod(F.silu)

    def gates(self, key: Tensor) -> tuple[Tensor, None]:
        dtype = torch.promote_types(key.dtype, torch.float32)
        head = torch.arange(self.shape.num_heads, dtype=dtype, device=key.device)
        return torch.log1p(-(2 ** (-5 - head))).expand(*key.shape[:2], -1), None
