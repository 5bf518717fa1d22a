"""T2R (Kasai et al. 2021, as used in Peng 2022, sec. 5.5.1 and 5.6): a learned feature map in place of the softmax.

phi(x) = relu(W x + b), with W and b of each head, the same for queries and keys.  Meant to be fine-tuned from a model
trained with softmax attention, whose projections it takes over.
O((T + S) N C) time, O(N C) state, N the size of the feature map.
Deviation: the map stays a layer of its own in decoding, not multiplied into the projections.
"""

from __future__ import annotations

import torch
from torch import nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.kernel.base import KernelAttention, wide
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.memory import FeatureMap, LearnedMap


@register_attention("t2r", sites=Site)
class T2RAttention(KernelAttention):
    """Features of a learned layer."""

    class Config(Options):
        features: int = option(32, least=1)  # N, size of a head's feature map

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        bound = (6 / (config.features + shape.head_dim)) ** 0.5  # Xavier, head by head
        weight = torch.empty(shape.num_heads, config.features, shape.head_dim).uniform_(-bound, bound)
        self.feature_weight = nn.Parameter(weight)
        self.feature_bias = nn.Parameter(torch.zeros(shape.num_heads, 1, config.features))

    def feature_map(self, fixed: bool) -> FeatureMap:
        return LearnedMap(wide(self.feature_weight), wide(self.feature_bias))
