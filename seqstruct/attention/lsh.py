"""LSH attention, of the Reformer (Kitaev et al. 2020, sec. 2): softmax over keys that a hash puts near the query.

Queries and keys are one projection, keys over their norm.  A query attends to the keys (s <= t where causal) that share
a bucket with it in some round of hashing by random rotations, drawn once and kept in checkpoints.  Up to `chunk`
positions all pairs are compared; beyond that positions are sorted by bucket and compared chunk by chunk, which misses
the farthest keys of a bucket larger than a chunk.
O(rounds T chunk C) time, O(T C) state; a decoding step compares with all keys.
Deviations: a position attends to itself like to any other of its bucket; rotations are not drawn anew in each pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention.base import Reading, Shape, Site
from seqstruct.attention.dot_product import Cache, DotProductAttention
from seqstruct.attention.option import option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.dot_product import softmax_weights
from seqstruct.ops.lsh import bucket_attention, hash_buckets, share_a_bucket
from seqstruct.ops.masking import check_padding_mask


@register_attention("lsh", sites={Site.ENCODER_SELF, Site.DECODER_SELF})
class LSHAttention(DotProductAttention):
    """Softmax inside buckets."""

    @dataclass(frozen=True)
    class Config:
        """Options."""

        rounds: int = option(4, least=1)  # independent hashes
        buckets: int = option(16, least=2)  # of each hash; even
        chunk: int = option(64, least=1)  # positions compared at once, and the largest bucket treated exactly

        def __post_init__(self) -> None:
            if self.buckets % 2:
                raise ValueError(f"lsh: buckets is even, not {self.buckets}")

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.k_proj = self.q_proj
        dim = shape.embed_dim // shape.num_heads
        self.register_buffer("rotations", torch.randn(shape.num_heads, config.rounds, dim, config.buckets // 2))

    def weights(self, query: Tensor, key: Tensor, visible: Tensor | None) -> Tensor:
        """B H T S, rows summing to 1 over the keys met in a bucket."""
        meet = share_a_bucket(hash_buckets(query, self.rotations), hash_buckets(key, self.rotations)) > 0
        return softmax_weights(query, F.normalize(key, dim=-1), meet if visible is None else meet & visible)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding_mask: Tensor | None = None,
        state: Cache | None = None,
        *,
        position: Tensor | None = None,
        need_weights: bool = False,
        carry: object = None,
    ) -> tuple[Reading, Cache | None]:
        """All queries at once; in chunks where there are more than `chunk` and no weights to show."""
        if state is not None or need_weights or query.size(1) <= self.config.chunk:
            return super().forward(
                query, key, value, padding_mask, state, position=position, need_weights=need_weights, carry=carry
            )
        check_padding_mask(padding_mask, key.size(0), key.size(1))
        queries, values = self._heads(self.q_proj(query)), self._heads(self.v_proj(value))
        buckets = hash_buckets(queries, self.rotations)
        context = bucket_attention(
            queries, F.normalize(queries, dim=-1), values, buckets, self.config.chunk, self.shape.causal, padding_mask
        )
        output = self.out_proj(context.transpose(1, 2).flatten(2))
        if padding_mask is not None:
            output = output.masked_fill(padding_mask.unsqueeze(-1), 0.0)
        return Reading(output), None
