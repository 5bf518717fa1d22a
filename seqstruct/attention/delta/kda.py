"""Kimi delta attention: the gated delta rule with a decay for each channel of the keys (Kimi Team 2025, eq. 1, sec. 3).

    S_t = (I - beta_t k_t k_t^T) diag(a_t) S_{t-1} + beta_t k_t v_t^T,   o_t = S_t^T q_t / sqrt(D)

log a_t = -exp(A) softplus(W_2 W_1 x + b), A one number a head.  Readings are times the logistic function of a
projection of the query's input.
O((T + S) C D) time, with two to three times the constant of `gated_delta`; O(C D) state.
Deviations: those of the base; beta's layer has a bias; the output gate's projection is one full matrix, not two narrow
ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.delta.base import DeltaAttention
from seqstruct.attention.delta.gates import ChannelStepSize, Strength
from seqstruct.attention.registry import register_attention


@register_attention("kda", sites=Site)
class ChannelDeltaAttention(DeltaAttention):
    """The delta rule with a decay for each channel."""

    output_gate = staticmethod(torch.sigmoid)

    @dataclass(frozen=True)
    class Config(DeltaAttention.Config):
        negative_eigenvalues: bool = False  # whether beta is in (0, 2), not (0, 1)

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        heads = shape.num_heads
        self.strength = Strength(shape.key_dim, heads, config.negative_eigenvalues)
        self.step_size = ChannelStepSize(shape.key_dim, heads, shape.embed_dim // heads)

    def gates(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """log a and beta, as above."""
        return self.step_size(key), self.strength(key)
