"""LSH attention, of the Reformer (Kitaev et al. 2020, sec. 2): softmax over keys that a hash puts near the query.

Queries and keys are one projection, keys over their norm.  In each round of hashing a query meets the tokens (up to its
own at a decoder) of its own bucket that lie within `chunk` places of it there; it attends to those met in any round,
and to itself only where it meets nothing else.  There are `buckets` buckets, and twice as many whenever there are more
tokens than chunk / 2 for each: tokens of the whole text at an encoder, up to the query's own at a decoder.  The hash is
that of the paper, the argmax over random rotations, and signs of further projections that halve its buckets, its
factored form; both are drawn once and kept in checkpoints.
O(rounds T chunk C) time, O(T C) state; a decoding step compares with all keys.
Deviations: of a bucket a query meets as many on either side, where the paper's chunks end where they happen to;
projections are not drawn anew in each pass; where a pair meets in several rounds, dropout drops each by itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.attention.base import Cost, Reading, Shape, Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.softmax.base import Cache, DotProductAttention
from seqstruct.ops.masking import mask_of, reordered
from seqstruct.ops.memory import bucket_attention, hash_codes, limits, meetings, met_weights
from seqstruct.ops.softmax import by_angle

HALVINGS = 16  # times that buckets can be halved


@register_attention("lsh", sites={Site.ENCODER_SELF, Site.DECODER_SELF})
class LSHAttention(DotProductAttention):
    """Softmax inside buckets."""

    cost = Cost(training="linear", state="linear")
    one_projection = True

    class Config(Options):
        rounds: int = option(4, least=1)  # independent hashes
        buckets: int = option(16, least=2, even=True)  # of each hash, at the fewest
        chunk: int = option(64, least=1)  # how far a query sees within a bucket, and twice the tokens for each bucket

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.k_proj = self.q_proj
        sizes = shape.num_heads, config.rounds, shape.head_dim
        self.limits = limits(config.buckets, config.chunk, HALVINGS)
        self.register_buffer("rotations", torch.randn(*sizes, config.buckets // 2))
        self.register_buffer("halvings", torch.randn(*sizes, HALVINGS))

    def _read(self, state: Cache, query: Tensor, causal: bool, need_weights: bool) -> Reading:
        """Attend from queries B T C, which are those of the last T cells in use."""
        return self._compare(query, *self._held(state)[:3], causal, need_weights)

    def _read_all(
        self, query: Tensor, keys: Tensor, values: Tensor, padding_mask: Tensor | None, need_weights: bool
    ) -> Reading:
        """In chunks where there are more than `chunk` queries and no weights to show."""
        padding = mask_of(padding_mask, query)
        if need_weights or query.size(1) <= self.config.chunk:
            return self._compare(query, keys, values, padding, self.shape.causal, need_weights)
        context = self._in_chunks(keys, values, padding)
        output = self.out_proj(context.transpose(1, 2).flatten(2))
        return Reading(output.masked_fill(padding.unsqueeze(-1), 0.0))

    def _compare(
        self, query: Tensor, key: Tensor, value: Tensor, padding: Tensor, causal: bool, need_weights: bool
    ) -> Reading:
        """By the definition: queries B T C of the last T of S positions; keys, values B H S D; padding B S."""
        steps, used = query.size(1), key.size(2)
        if used == 0:
            return Reading(query.new_zeros(query.shape), query.new_zeros(*key.shape[:2], steps, 0))
        heads = self._heads(self.q_proj(query))
        halvings = self.halvings[..., : self._halved(used)]
        asked, codes = (hash_codes(x, self.rotations, halvings) for x in (heads, key))
        tokens = (~padding).cumsum(1)
        tokens = tokens[:, used - steps :] if causal else tokens[:, -1:].expand(-1, steps)
        met = meetings(codes, asked, self._coarser(tokens, used), self.config.chunk, causal, padding) > 0
        weights = met_weights(heads, by_angle(key), met)
        output = self.out_proj(self._apply_weights(weights, value).transpose(1, 2).flatten(2))
        output = output.masked_fill(padding[:, used - steps :, None], 0.0)
        return Reading(output, weights if need_weights else None)

    def _in_chunks(self, queries: Tensor, values: Tensor, padding: Tensor) -> Tensor:
        """B H T D for queries, which are keys too, and values of that shape; padding B T."""
        length, causal, chunk = queries.size(2), self.shape.causal, self.config.chunk
        dropout = self.dropout_rate
        codes = hash_codes(queries, self.rotations, self.halvings[..., : self._halved(length)])
        if not causal:
            codes = codes >> self._coarser((~padding).sum(1, keepdim=True), length)[:, None, None]
            return bucket_attention(queries, by_angle(queries), values, codes, chunk, False, padding, dropout)
        order = padding.long().argsort(dim=1, stable=True)  # tokens first: their positions are those without padding
        padding = padding.gather(1, order)
        codes = codes.gather(3, order[:, None, None].expand_as(codes))
        queries, values = (reordered(x, order) for x in (queries, values))
        keys, parts, start = by_angle(queries), [], 0
        for times in range(self._halved(length) + 1):
            end = min(length, self.limits[times]) if times < HALVINGS else length
            now = (*(x[:, :, :end] for x in (queries, keys, values)), codes[..., :end] >> self._halved(length) - times)
            parts.append(bucket_attention(*now, chunk, True, padding[:, :end], dropout)[:, :, start:])
            start = end
        return reordered(torch.cat(parts, 2), order.argsort(1))

    def _halved(self, tokens: int) -> int:
        """How often buckets are halved for so many tokens."""
        return sum(tokens > limit for limit in self.limits)

    def _coarser(self, tokens: Tensor, most: int) -> Tensor:
        """The bits of codes for `most` tokens that so many tokens (any shape, long) have no use for."""
        unneeded = torch.zeros_like(tokens)
        for limit in self.limits[: self._halved(most)]:
            unneeded = unneeded + (tokens <= limit)
        return unneeded
