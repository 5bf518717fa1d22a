"""Clustered keys (Vyas et al. 2020, as read by Peng 2022, sec. 5.3.2 and eq. 5.6): queries attend to means of clusters.

Where all keys are known, at an encoder and across, clusters are found by k-means among a row's keys, for each head by
itself; gradients go through the means alone.  All keys have to be written at once there.
In a decoder a key joins the cluster whose direction is closest to its own, after the mean of the keys before it is
taken off, and stays there; the directions are random, drawn once and kept in checkpoints, and means are those of the
prefix.
O((T + S) n C) time, of k-means O(iterations S n C), O(n C) state, n the number of clusters.
Deviations: keys and values are clustered, not queries (as in the thesis), by their vectors and not by binary codes of
them; prefixes are not clustered anew with each token.
At sites that read all keys at once, fewer tokens than clusters are a ValueError, unless `allow_short`: then the
clusters without a token are left out, as they are in a decoder.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from seqstruct.attention.base import Attention, Inputs, Reading, Shape, Site
from seqstruct.attention.memory.base import BoundedMemoryAttention, SlotState, one_hot
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.states import select_rows
from seqstruct.ops.masking import fails
from seqstruct.ops.memory import BoundedMemory, anything_written, k_means


@register_attention("clustering", sites=Site)
class ClusteringAttention(BoundedMemoryAttention):
    """One slot a cluster."""

    means = True

    class Config(Options):
        slots: int = option(32, least=1)  # n, clusters
        allow_short: bool = False  # whether an encoder may read fewer tokens than there are clusters
        empty_slots: bool = False  # whether empty clusters take part in the softmax, with key and value 0
        iterations: int = option(10, least=0)  # rounds of k-means, where all keys are known; 10 in the released code

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        if self.left_to_right:
            directions = torch.randn(shape.num_heads, config.slots, shape.head_dim)
            self.register_buffer("directions", directions / directions.norm(dim=-1, keepdim=True))

    @property
    def at_once(self) -> bool:
        return not self.left_to_right

    def write(self, state: SlotState, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> SlotState:
        """Write keys and values B S C.

        Raises ValueError, where all keys are clustered, if something was written before, or there are fewer tokens
        (padding counts) than clusters.
        """
        if self.at_once and key.size(1):
            again = f"clustering at {self.shape.site.value}: all keys are written at once, none later"
            if fails(anything_written(state.memory), again):
                raise ValueError(again)
            if key.size(1) < self.config.slots and not self.config.allow_short:
                raise ValueError(
                    f"clustering: {key.size(1)} tokens for {self.config.slots} clusters; "
                    "take fewer clusters, or allow_short=True"
                )
        return super().write(state, key, value, padding_mask)

    def advance(self, inputs: Inputs, state: SlotState, order: Tensor | None) -> tuple[Reading, SlotState]:
        """One pass over the slots, which say where the key belongs."""
        state = state if order is None else select_rows(state, order)
        return (Attention if self.at_once else BoundedMemoryAttention).advance(self, inputs, state, None)

    def control_given(
        self, memory: BoundedMemory, key: Tensor, heads: Tensor, position: None, padding: Tensor | None
    ) -> Tensor:
        """0, the logarithm of 1, in the key's cluster and -inf elsewhere."""
        if self.at_once:
            cluster = k_means(heads, self.config.slots, self.config.iterations, padding)
        else:
            centred = heads.detach() - _means_before(memory, heads.detach(), padding)
            cluster = (centred @ self.directions.to(heads.dtype).transpose(1, 2)).argmax(-1)
        members = one_hot(cluster, self.config.slots, torch.bool)
        return torch.zeros_like(members, dtype=heads.dtype).masked_fill(~members, -math.inf)


@torch.no_grad()
def _means_before(memory: BoundedMemory, heads: Tensor, padding: Tensor | None) -> Tensor:
    """B H S D: of the keys written before each of the keys B H S D, 0 before the first."""
    sizes = memory.log_total.exp().unsqueeze(-1)  # B H n 1
    real = torch.ones_like(heads[..., :1]) if padding is None else (~padding)[:, None, :, None].to(heads.dtype)
    written = heads * real
    totals = (memory.key * sizes).sum(2, keepdim=True) + written.cumsum(2) - written
    return totals / (sizes.sum(2, keepdim=True) + real.cumsum(2) - real).clamp(min=1)
