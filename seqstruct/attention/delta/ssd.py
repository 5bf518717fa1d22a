"""Mamba-2's memory as attention, with a decay of one number a head (Dao and Gu 2024, sec. 5.1 and 7.1).

    S_t = a_t S_{t-1} + delta_t k_t v_t^T,   o_t = S_t^T q_t / sqrt(D),   log a_t = -exp(A) delta_t

q, k, v, of SiLU each, are the paper's C, B and x; delta = softplus(W x + b).  Readings are times SiLU of a projection
of the query's input.
O((T + S) C D) time, O(C D) state.
Deviations: those of the base; each head has queries and keys of its own, where the paper's share one of each;
products are divided by sqrt(D) and normed before the output gate, in each head; what the paper adds of v_t itself (its
D) is left to the residual connection.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.delta.base import DeltaAttention, Entries
from seqstruct.attention.delta.gates import StepSize
from seqstruct.attention.registry import register_attention


@register_attention("ssd", sites=Site)
class StateSpaceAttention(DeltaAttention):
    """A sum of outer products that decays as it is written to."""

    normed = False
    output_gate = staticmethod(F.silu)

    def __init__(self, config: DeltaAttention.Config, shape: Shape):
        super().__init__(config, shape)
        self.step_size = StepSize(shape.key_dim, shape.num_heads)

    def gates(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """log a and delta, both B S H."""
        return self.step_size(key)

    def _written(self, *inputs: Tensor | None) -> Entries:
        keys, values, log_decay, size = super()._written(*inputs)
        return Entries(keys * size.unsqueeze(-1), values, log_decay)
