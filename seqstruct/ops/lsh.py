"""Softmax attention inside the buckets of a locality-sensitive hash (Kitaev et al. 2020, sec. 2).

Two positions may attend to each other if some round of hashing puts both into one bucket.
Axis letters: B batch, H heads, R rounds, T positions, D size of a head.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def hash_buckets(x: Tensor, rotations: Tensor) -> Tensor:
    """B H R T long: argmax of [x M, -x M] for x B H T D and the rotations M, H R D N/2 for N buckets."""
    rotated = x.detach().to(rotations.dtype).unsqueeze(2) @ rotations  # B H R T N/2
    return torch.cat([rotated, -rotated], -1).argmax(-1)


def share_a_bucket(first: Tensor, second: Tensor) -> Tensor:
    """B H T S long: in how many rounds the positions of B H R T and B H R S meet."""
    return (first.unsqueeze(-1) == second.unsqueeze(-2)).sum(2)


def bucket_attention(
    query: Tensor, key: Tensor, value: Tensor, buckets: Tensor, chunk: int, causal: bool, padding: Tensor | None = None
) -> Tensor:
    """B H T D: softmax over the keys that share a bucket with the query in some round (s <= t where causal).

    query, key, value: B H T D; buckets: B H R T; padding: B T bool, True = padding.
    In each round positions are sorted by bucket and cut into chunks, and a query sees its own chunk and the one before
    (and the one after, unless causal): exact where no bucket is larger than `chunk`, otherwise the farthest keys of a
    large bucket are missed.  O(R T chunk D) time and O(R T (chunk + D)) memory.
    """
    batch, heads, rounds, length = buckets.shape
    pad = torch.zeros(batch, length, dtype=torch.bool, device=query.device) if padding is None else padding
    tail = -length % chunk
    count = (length + tail) // chunk
    pad = F.pad(pad, (0, tail), value=True)
    query, key, value = (F.pad(x, (0, 0, 0, tail)) for x in (query, key, value))
    beyond = int(buckets.max()) + 1
    buckets = F.pad(buckets, (0, tail)).masked_fill(pad[:, None, None], beyond)
    outputs, totals = [], []
    for r in range(rounds):
        order = buckets[:, :, r].sort(dim=-1, stable=True).indices  # B H T
        sorted_q, sorted_k, sorted_v = (_chunks(_take(x, order), count) for x in (query, key, value))
        place, ids = _chunks(order, count), buckets.gather(3, order.unsqueeze(2).expand(-1, -1, rounds, -1))
        ids = ids.unflatten(3, (count, chunk))  # B H R J chunk
        near_k, near_v = (_with_neighbours(x, 2, causal) for x in (sorted_k, sorted_v))
        near_place = _with_neighbours(place, 2, causal, fill=-1)
        meet = (ids.unsqueeze(-1) == _with_neighbours(ids, 3, causal, fill=-1).unsqueeze(-2)).int()
        visible = (meet[:, :, r] > 0) & (near_place >= 0).unsqueeze(-2)
        if causal:
            visible &= near_place.unsqueeze(-2) <= place.unsqueeze(-1)
        logits = (sorted_q * query.size(-1) ** -0.5) @ near_k.transpose(-1, -2)
        # A pair that meets in several rounds has its weight shared out among them.
        logits = (logits - meet.sum(2).clamp(min=1).to(logits.dtype).log()).masked_fill(~visible, -math.inf)
        total = logits.logsumexp(-1)  # B H J chunk
        back = order.argsort(-1)
        outputs.append(_take(((logits - total.unsqueeze(-1)).exp() @ near_v).flatten(2, 3), back))
        totals.append(total.flatten(2, 3).gather(2, back))
    shares = torch.stack(totals).softmax(0).unsqueeze(-1)  # R B H T 1
    return (torch.stack(outputs) * shares).sum(0)[:, :, :length]


def _take(x: Tensor, order: Tensor) -> Tensor:
    return x.gather(2, order.unsqueeze(-1).expand(-1, -1, -1, x.size(-1)))


def _chunks(x: Tensor, count: int) -> Tensor:
    return x.unflatten(2, (count, -1))


def _with_neighbours(x: Tensor, dim: int, causal: bool, fill: int = 0) -> Tensor:
    """x (chunks along `dim`, positions after it) with the chunk before, and the one after unless causal."""
    edge = torch.full_like(x.narrow(dim, 0, 1), fill)
    before = torch.cat([edge, x.narrow(dim, 0, x.size(dim) - 1)], dim)
    parts = [before, x] if causal else [before, x, torch.cat([x.narrow(dim, 1, x.size(dim) - 1), edge], dim)]
    return torch.cat(parts, dim + 1)
