"""Kimi delta attention: the gated delta rule with a decay for each channel of the keys (Kimi Team 2025, eq. 1, sec. 3).

    S_t = (I - beta_t k_t k_t^T) diag(a_t) S_{t-1} + beta_t k_t v_t^T,   o_t = S_t^T q_t / sqrt(D)

log a_t = -exp(A) softplus(W_2 W_1 x + b), A one number a head.  Readings are times the logistic function of a
projection of the query's input.
O((T + S) C D) time, with two to three times the constant of `gated_delta`; O(C D) state.
Deviations: those of the base; beta's layer has a bias; the output gate's projection is one full matrix, not two narrow
ones.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.delta.delta import DeltaRuleAttention
from seqstruct.attention.delta.gates import ChannelStepSize
from seqstruct.attention.registry import register_attention


@register_attention("kda", sites=Site)
class ChannelDeltaAttention(DeltaRuleAttention):
    """The delta rule with a decay for each channel."""

    output_gate = staticmethod(torch.sigmoid)

    def __init__(self, config: DeltaRuleAttention.Config, shape: Shape):
        super().__init__(config, shape)
        self.step_size = ChannelStepSize(shape.key_dim, shape.num_heads, shape.head_dim)

    def gates(self, key: Tensor) -> tuple[Tensor, Tensor]:
        return self.step_size(key), self.strength(key)
