"""Gated DeltaNet: the delta rule on a memory that decays (Yang et al. 2025, eq. 10 and sec. 3.4).

    S_t = a_t (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T,   o_t = S_t^T q_t / sqrt(D)

a_t is Mamba-2's decay, one number a head; beta_t and `negative_eigenvalues` are those of `delta`.  Readings are times
SiLU of a projection of the query's input.
O((T + S) C D) time, O(C D) state.
Deviations: those of the base; beta's layer has a bias; keys are as long as values.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.delta.delta import DeltaRuleAttention
from seqstruct.attention.delta.gates import StepSize
from seqstruct.attention.registry import register_attention


@register_attention("gated_delta", sites=Site)
class GatedDeltaAttention(DeltaRuleAttention):
    """The delta rule with a scalar decay."""

    output_gate = staticmethod(F.silu)

    def __init__(self, config: DeltaRuleAttention.Config, shape: Shape):
        super().__init__(config, shape)
        self.step_size = StepSize(shape.key_dim, shape.num_heads)

    def gates(self, key: Tensor) -> tuple[Tensor, Tensor]:
        return self.step_size(key)[0], self.strength(key)
