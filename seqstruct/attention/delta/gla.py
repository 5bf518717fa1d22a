"""Gated linear attention (Yang et al. 2024, "Gated linear attention transformers", sec. 4.1 and 4.4).

    S_t = diag(a_t) S_{t-1} + k_t v_t^T,   o_t = S_t^T q_t / sqrt(D),   a_t = sigmoid(W_2 W_1 x_t + b)^(1/16)

The decay has one number for each channel of the keys, through a narrow layer of 16.  Keys, queries and values are plain
projections; readings are times SiLU of a projection of the query's input.  Without decay, correction and norm this is
linear attention with the identity as feature map and without a denominator.
O((T + S) C D) time, O(C D) state.
Deviations: those of the base; keys are as long as values, not half as long; the root of the mean square has no mean
taken off, and the output gate's projection no bias.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.delta.base import DeltaAttention
from seqstruct.attention.delta.gates import low_rank
from seqstruct.attention.gate import wide_layers
from seqstruct.attention.registry import register_attention

RANK, ROOT = 16, 16


@register_attention("gla", sites=Site)
class GatedLinearAttention(DeltaAttention):
    """A sum of outer products that decays channel by channel."""

    activated = normed = False
    output_gate = staticmethod(F.silu)

    def __init__(self, config: DeltaAttention.Config, shape: Shape):
        super().__init__(config, shape)
        self.decay_layer = low_rank(shape.key_dim, RANK, shape.embed_dim, bias=True)

    def gates(self, key: Tensor) -> tuple[Tensor, None]:
        log_decay = F.logsigmoid(wide_layers(self.decay_layer, key)) / ROOT
        return log_decay.unflatten(-1, (self.shape.num_heads, -1)), None
