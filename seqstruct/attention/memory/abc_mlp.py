"""Attention with learned bounded-memory control, ABC-MLP (Peng 2022, sec. 5.4): tokens choose the slots they go to.

A slot holds the mean of the keys and of the values, weighted by alpha = f(W x), x the input that keys are made from and
f exp, sigmoid or relu; in a decoder the mean over the prefix (the second form of section 5.4, not Table 5.1's).
W is shared by the layers of a site.  The gate, one scalar a head and step, decays sums and totals alike; at sites that
read all keys at once it decays keys by their distance from the last.
O((T + S) n C) time, O(n C) state, n the number of slots.
Deviation: products of queries and keys are scaled by the root of a head's size, as in softmax attention.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.gate import Gate
from seqstruct.attention.memory.base import BoundedMemoryAttention
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention

ACTIVATIONS = ("exp", "sigmoid", "relu")


@register_attention("abc_mlp", sites=Site)
class LearnedControlAttention(BoundedMemoryAttention):
    """Controls from a layer with a positive activation."""

    means = True

    class Config(Options):
        slots: int = option(32, least=1)  # n, size of the memory
        activation: str = option("exp", among=ACTIVATIONS)  # what makes a weight of a token's score for a slot
        gate: bool = False  # whether a learned gate decays the memory (eq. 4.8)
        empty_slots: bool = False  # whether slots without any weight take part in the softmax, with key and value 0

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.tied = self.shared(config, shape)
        if config.gate:
            self.gate_layer = Gate(shape.key_dim, shape.num_heads)

    @classmethod
    def shared(cls, config: Config, shape: Shape) -> nn.Linear:
        """W: from key_dim to the slots of all heads."""
        layer = nn.Linear(shape.key_dim, shape.num_heads * config.slots, bias=False)
        nn.init.xavier_uniform_(layer.weight)
        return layer

    def control(self, key: Tensor, heads: Tensor, position: Tensor | None) -> Tensor:
        score = F.linear(key.to(heads.dtype), self.tied.weight.to(heads.dtype))
        score = score.unflatten(-1, (self.shape.num_heads, -1)).transpose(1, 2)
        if self.config.activation == "exp":
            return score
        if self.config.activation == "sigmoid":
            return F.logsigmoid(score)
        positive = score > 0
        return torch.where(positive, score.masked_fill(~positive, 1.0).log(), -math.inf)

    def gate_logits(self, key: Tensor) -> Tensor | None:
        return self.gate_layer(key).transpose(1, 2) if self.config.gate else None
