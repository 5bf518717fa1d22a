"""Softmax attention inside the buckets of a locality-sensitive hash (Kitaev et al. 2020, sec. 2).

In a round of hashing a query meets the positions of its own bucket that lie at most `chunk` places from it, counted
within the bucket (behind it alone where causal); it attends to those met in any round.  To itself it attends only where
it meets nothing else (there, "Causal masking for shared-QK attention").  Which positions meet depends on their own
hashes and on what stands between them, never on what comes later.  `meetings` is the definition, `bucket_attention` the
same in sorted chunks.

Buckets follow the length: a hash has twice as many whenever the tokens outgrow chunk / 2 for each bucket, the paper's
ratio.  Its code is that of the finest buckets, and coarser ones forget the lowest bits; where causal, a query uses the
buckets of its own position.

Axis letters: B batch, H heads, R rounds, T queries, S keys, D size of a head.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.softmax import masked_softmax, scaled_scores, weighted_values

NOWHERE = -(2**30)  # a place far from all
ALONE = -1e30  # the logit of a position with itself: nothing beside any other, everything where there is no other


def hash_codes(x: Tensor, rotations: Tensor, halvings: Tensor) -> Tensor:
    """B H R T long for x B H T D: the argmax of [x M, -x M], then one bit for each sign of x N.

    rotations: M, H R D n/2 for n buckets; halvings: N, H R D L, each of which halves all of them.
    """
    x = x.detach().to(rotations.dtype).unsqueeze(2)
    rotated = x @ rotations  # B H R T n/2
    codes = torch.cat([rotated, -rotated], -1).argmax(-1)
    bits = (x @ halvings > 0).long()
    for i in range(bits.size(-1)):
        codes = 2 * codes + bits[..., i]
    return codes


def limits(buckets: int, chunk: int, most: int) -> list[int]:
    """The most tokens for which `buckets` suffice, then for twice as many and so on, `most` times."""
    return [(buckets * chunk // 2) << i for i in range(most)]


def meetings(codes: Tensor, asked: Tensor, coarser: Tensor, chunk: int, causal: bool, padding: Tensor) -> Tensor:
    """B H T S long: in how many rounds the last T of the S positions meet each.

    codes: B H R S; asked: B H R T, those of the queries; coarser: B T, the bits that each query forgets; padding: B S
    bool, True = padding, which meets nothing.  O(R T S) time and memory: the definition.
    """
    queries, keys = asked.size(3), codes.size(3)
    apart = (asked.unsqueeze(-1) ^ codes.unsqueeze(-2)) >> coarser[:, None, None, :, None]  # B H R T S
    same = (apart == 0) & ~padding[:, None, None, None]
    own = torch.arange(keys - queries, keys, device=codes.device)
    place = same.cumsum(-1)  # within the bucket
    ages = place[..., torch.arange(queries, device=codes.device), own].unsqueeze(-1) - place
    if causal:
        same = same & (torch.arange(keys, device=codes.device) <= own.unsqueeze(1))
    return (same & (ages.abs() <= chunk) & ~padding[:, None, None, own, None]).sum(2)


def met_weights(query: Tensor, key: Tensor, met: Tensor) -> Tensor:
    """B H T S, float32 at least: softmax over the keys B H S D that the last T positions, B H T D, met (B H T S bool).

    Rows sum to 1, or are zero where nothing is met, itself included.
    """
    own = met.new_ones(met.shape[2:]).tril(met.size(3) - met.size(2)).triu(met.size(3) - met.size(2))
    return masked_softmax(scaled_scores(query, key).masked_fill(own, ALONE), ~met)


def bucket_attention(
    query: Tensor, key: Tensor, value: Tensor, codes: Tensor, chunk: int, causal: bool, padding: Tensor,
    dropout: float = 0.0,
) -> Tensor:
    """B H T D: softmax over what each position meets in some round, by one kind of buckets; 0 at padding.

    query, key, value: B H T D; codes: B H R T, of the buckets; padding: B T bool, True = padding; dropout: of weights,
    in each round by itself.
    Positions are sorted by bucket in each round and cut into chunks; one meets no other than those of its own chunk,
    the one before and, unless causal, the one after.  O(R T chunk (D + R)) time, O(R T (chunk R + D)) memory.
    """
    length, rounds = query.size(2), codes.size(2)
    tail = -length % chunk
    padding = F.pad(padding, (0, tail), value=True)
    nothing = padding[:, None, :, None]
    query, key, value = (F.pad(x, (0, 0, 0, tail)).masked_fill(nothing, 0) for x in (query, key, value))
    last = torch.iinfo(codes.dtype).max
    codes = F.pad(codes, (0, tail)).masked_fill(padding[:, None, None], last)
    sorted_codes, order = codes.sort(dim=-1, stable=True)
    back = order.argsort(-1)
    # Places in the sorted sequence, with more than a chunk between two buckets.
    bucket = F.pad(sorted_codes[..., 1:] != sorted_codes[..., :-1], (1, 0)).cumsum(-1)
    index = torch.arange(length + tail, device=query.device)
    places = (index + (chunk + 1) * bucket).gather(3, back).int()  # B H R T
    outputs, totals = [], []
    for r in range(rounds):
        by_bucket = order[:, :, r]  # B H T
        sorted_q, sorted_k, sorted_v = (_take(x, by_bucket).unflatten(2, (-1, chunk)) for x in (query, key, value))
        own = places.gather(3, by_bucket.unsqueeze(2).expand(-1, -1, rounds, -1)).unflatten(3, (-1, chunk))
        ages = own.unsqueeze(-1) - _with_neighbours(own, 3, causal, fill=NOWHERE).unsqueeze(-2)  # B H R J chunk keys
        met = (ages >= 0) & (ages <= chunk) if causal else ages.abs() <= chunk
        # A pair that meets in several rounds has its weight shared out among them.
        offset = -met.sum(2, dtype=torch.promote_types(query.dtype, torch.float32)).log()
        offset.masked_fill_(ages[:, :, r] == 0, ALONE).masked_fill_(~met[:, :, r], -math.inf)
        logits = scaled_scores(sorted_q, _with_neighbours(sorted_k, 2, causal)) + offset
        total = logits.logsumexp(-1, keepdim=True)  # B H J chunk 1
        read = weighted_values((logits - total).exp(), _with_neighbours(sorted_v, 2, causal), dropout)
        outputs.append(_take(read.flatten(2, 3), back[:, :, r]))
        totals.append(total.flatten(2).gather(2, back[:, :, r]))
    shares = torch.stack(totals).softmax(0).unsqueeze(-1)  # R B H T 1
    output = (torch.stack(outputs) * shares.to(value.dtype)).sum(0)
    return output.masked_fill(nothing, 0)[:, :, :length]


def _take(x: Tensor, order: Tensor) -> Tensor:
    return x.gather(2, order.unsqueeze(-1).expand(-1, -1, -1, x.size(-1)))


def _with_neighbours(x: Tensor, dim: int, causal: bool, fill: int = 0) -> Tensor:
    """x (chunks along `dim`, positions after it) with the chunk before, and the one after unless causal."""
    edge = torch.full_like(x.narrow(dim, 0, 1), fill)
    before = torch.cat([edge, x.narrow(dim, 0, x.size(dim) - 1)], dim)
    parts = [before, x] if causal else [before, x, torch.cat([x.narrow(dim, 1, x.size(dim) - 1), edge], dim)]
    return torch.cat(parts, dim + 1)
