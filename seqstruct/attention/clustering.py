"""Clustered keys (Vyas et al. 2020, as read by Peng 2022, sec. 5.3.2 and eq. 5.6): queries attend to means of clusters.

A key belongs to the cluster whose direction it is closest to in angle; the directions, one set a head, are random,
drawn once and kept in checkpoints.  In a decoder the means are those of the prefix.
O((T + S) n C) time, O(n C) state, n the number of clusters.
Deviations: keys and values are clustered, not queries (as in the thesis); the directions stay as drawn, where the
paper fits them to the keys by rounds of k-means, for which all keys would have to be known.
At sites that read all keys at once, fewer tokens than clusters are a ValueError, unless `allow_short`: then the
clusters without a token are left out, as they are in a decoder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from seqstruct.attention.base import Reading, Shape, Site
from seqstruct.attention.bounded_memory import BoundedMemoryAttention, SlotState, one_hot
from seqstruct.attention.option import option
from seqstruct.attention.registry import register_attention


@register_attention("clustering", sites=Site)
class ClusteringAttention(BoundedMemoryAttention):
    """One slot a cluster."""

    means = True

    @dataclass(frozen=True)
    class Config:
        """Options."""

        slots: int = option(32, least=1)  # n, clusters
        allow_short: bool = False  # whether an encoder may read fewer tokens than there are clusters
        empty_slots: bool = False  # whether empty clusters take part in the softmax, with key and value 0

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        dim = shape.embed_dim // shape.num_heads
        directions = torch.randn(shape.num_heads, config.slots, dim)
        self.register_buffer("directions", directions / directions.norm(dim=-1, keepdim=True))

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, padding_mask: Tensor | None = None,
        state: SlotState | None = None, **options: object,
    ) -> tuple[Reading, SlotState | None]:
        """All queries at once.  Raises ValueError if an encoder gets fewer tokens (padding counts) than clusters."""
        if not (self.left_to_right or self.config.allow_short) and 0 < key.size(1) < self.config.slots:
            raise ValueError(
                f"clustering: {key.size(1)} tokens for {self.config.slots} clusters; "
                "take fewer clusters, or allow_short=True"
            )
        return super().forward(query, key, value, padding_mask, state, **options)

    def control(self, key: Tensor, heads: Tensor, position: Tensor | None) -> Tensor:
        """0, the logarithm of 1, in the key's cluster and -inf elsewhere."""
        closeness = heads.detach() @ self.directions.to(heads.dtype).transpose(1, 2)  # B H S n
        members = one_hot(closeness.argmax(-1), self.config.slots, torch.bool)
        return torch.zeros_like(closeness).masked_fill(~members, -math.inf)
