"""Softmax attention between blocks of tokens, at an encoder (Zaheer et al. 2020; Tay et al. 2020, 2021).

Axis letters: B batch, H heads, T positions, J blocks, P positions of a block, D size of a head.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.opaque import opaque
from seqstruct.ops.softmax import softmax_attention


class Layout(NamedTuple):
    """Where tokens stand in blocks: real ones first, so that padding moves nothing.

    order: B T, the positions in their new order; real: B J P bool.
    """

    order: Tensor
    real: Tensor

    @property
    def blocks(self) -> Tensor:
        """B, the number of blocks with a token."""
        return self.real.any(2).sum(1)


def layout(padding_mask: Tensor, size: int) -> Layout:
    """Blocks of `size` positions for a mask B T (True = padding)."""
    order = padding_mask.long().argsort(dim=1, stable=True)
    real = F.pad(~padding_mask.gather(1, order), (0, -padding_mask.size(1) % size), value=False)
    return Layout(order, real.unflatten(1, (-1, size)))


def to_blocks(x: Tensor, place: Layout) -> Tensor:
    """B H T D to B H J P D, zeros where there is no token."""
    order = place.order[:, None, :, None].expand(-1, x.size(1), -1, x.size(3))
    count, size = place.real.shape[1:]
    moved = F.pad(x.gather(2, order), (0, 0, 0, count * size - x.size(2))).unflatten(2, (count, size))
    return moved.masked_fill(~place.real[:, None, :, :, None], 0.0)


def from_blocks(x: Tensor, place: Layout) -> Tensor:
    """B H J P D back to B H T D."""
    back = place.order.argsort(1)[:, None, :, None].expand(-1, x.size(1), -1, x.size(4))
    return x.flatten(2, 3).gather(2, back)


@opaque(lambda query, *_: query.new_empty(query.shape))
def block_sparse_attention(
    query: Tensor, key: Tensor, value: Tensor, real: Tensor, neighbours: Tensor, whole: int = 0,
    most: int = 0,
) -> Tensor:
    """B H J P D: the queries of block i attend to the tokens of the blocks j with neighbours[b, i, j].

    query, key, value: B H J P D; real: B J P bool; neighbours: B J J bool; whole: the first so many blocks attend to
    everything; most: at least M, the largest number of neighbours of a block beyond those, 0 to have it counted, for
    which the host looks.  O(J most P^2 D) time.
    """
    batch, _, count, size, _ = query.shape
    if not most:
        seen = neighbours[:, whole:].sum(2)
        most = max(1, int(seen.max())) if seen.numel() else 1
    present, ids = neighbours.to(torch.uint8).topk(min(most, count), dim=2)  # B J M
    rows = torch.arange(batch, device=query.device)[:, None, None]
    near = [x.transpose(1, 2)[rows, ids].transpose(2, 3).flatten(3, 4).flatten(0, 1) for x in (key, value)]
    visible = (real[rows, ids] & present.bool().unsqueeze(3)).flatten(2).flatten(0, 1)  # B*J M*P
    output = softmax_attention(query.transpose(1, 2).flatten(0, 1), *near, visible[:, None, None])
    output = output.unflatten(0, (batch, count)).transpose(1, 2)
    if not whole:
        return output
    first = query[:, :, :whole].flatten(2, 3)
    first = softmax_attention(first, key.flatten(2, 3), value.flatten(2, 3), real.flatten(1)[:, None, None])
    return torch.cat([first.unflatten(2, (-1, size)), output[:, :, whole:]], 2)


def sinkhorn(logits: Tensor, blocks: Tensor, rounds: int) -> Tensor:
    """B H J J, rows and columns of sum 1 in the limit: exp(logits), normalised in turn, over the blocks that exist.

    logits: B H J J; blocks: B, blocks with a token; rounds: of rows, then columns.  Zero at other blocks.
    """
    there = torch.arange(logits.size(-1), device=logits.device) < blocks.unsqueeze(1)  # B J
    pairs = (there.unsqueeze(2) & there.unsqueeze(1)).unsqueeze(1)
    logits = logits.masked_fill(~pairs, -1e30)
    for _ in range(rounds):
        logits = logits - logits.logsumexp(-1, keepdim=True).masked_fill(~there[:, None, :, None], 0.0)
        logits = logits - logits.logsumexp(-2, keepdim=True).masked_fill(~there[:, None, None], 0.0)
    return logits.exp().masked_fill(~pairs, 0.0)
