"""Softmax attention to a window of tokens, in blocks, and a ring of recent ones (Peng 2022, sec. 5.3.3, 5.3.6).

Axis letters: B batch, H heads, T queries, S new keys, D size of a key or value, L cells of the ring.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.opaque import opaque
from seqstruct.ops.softmax import softmax_attention

LEAST_BLOCK = 32


@opaque(lambda query, *_: query.new_empty(query.shape))
def window_attention(query: Tensor, key: Tensor, value: Tensor, window: int, dilation: int, there: Tensor) -> Tensor:
    """B H T D: query t attends to the cells t, t + dilation, ..., t + (window - 1) dilation.

    query: B H T D; key, value: B H R+T D, R = (window - 1) dilation: with R cells before the first query's own the
    window ends at the query, with fewer it reaches beyond.  there: B R+T bool, True where a cell may be looked at.
    O(T max(window, LEAST_BLOCK) D) time and memory.
    """
    length, reach = query.size(2), window - 1
    if length == 0:
        return torch.zeros_like(query)
    tail = -length % dilation
    query, key, value = (_by_phase(F.pad(x, (0, 0, 0, tail)), dilation) for x in (query, key, value))
    visible = _by_phase(F.pad(there, (0, tail))[:, None, :, None], dilation)[:, 0, :, 0]  # B*dilation R+T
    block = max(reach, LEAST_BLOCK)
    steps = query.size(2)
    count = -(-steps // block)
    after = count * block - steps
    front = block - reach
    query = F.pad(query, (0, 0, 0, after)).unflatten(2, (count, block))
    key, value = (F.pad(x, (0, 0, front, after)).unflatten(2, (count + 1, block)) for x in (key, value))
    key, value = (torch.cat([x[:, :, :-1], x[:, :, 1:]], 3) for x in (key, value))
    visible = F.pad(visible, (front, after)).unflatten(1, (count + 1, block))
    visible = torch.cat([visible[:, :-1], visible[:, 1:]], 2)  # B*dilation J 2*block
    ages = torch.arange(block, device=query.device).unsqueeze(1) + block - torch.arange(2 * block, device=query.device)
    visible = visible.unsqueeze(2) & ((ages >= 0) & (ages < window))  # B*dilation J block 2*block
    blocks = [x.transpose(1, 2).flatten(0, 1) for x in (query, key, value)]
    output = softmax_attention(*blocks, visible.flatten(0, 1).unsqueeze(1))
    output = output.unflatten(0, (-1, count)).transpose(1, 2).flatten(2, 3)[:, :, :steps]
    return output.unflatten(0, (-1, dilation)).permute(0, 2, 3, 1, 4).flatten(2, 3)[:, :, :length]


def _by_phase(x: Tensor, dilation: int) -> Tensor:
    """B H N D to B*dilation H N/dilation D: positions of one residue in one row."""
    return x.unflatten(2, (-1, dilation)).permute(0, 3, 1, 2, 4).flatten(0, 1)


def ring_positions(count: Tensor, cells: int) -> Tensor:
    """B L long: which token (from 0) each cell holds after `count` tokens (B); negative where none was written."""
    last = count.unsqueeze(1) - 1
    return last - (last - torch.arange(cells, device=count.device)) % cells


def ring_write(ring: Tensor, new: Tensor, old_count: Tensor, count: Tensor) -> Tensor:
    """The ring B H L D after the first count - old_count (B) of the vectors `new` (B H S D); the old one is consumed.

    Token p lies in cell p mod L.  Written in place for one step where gradients are off.
    """
    cells = ring.size(2)
    if new.size(2) == 1 and not torch.is_grad_enabled():
        rows = torch.arange(len(ring), device=ring.device)
        cell = old_count % cells
        kept = torch.where((count > old_count).view(-1, 1, 1), new.squeeze(2), ring[rows, :, cell])
        ring[rows, :, cell] = kept
        return ring
    if new.size(2) == 0:
        return ring
    place = ring_positions(count, cells) - old_count.unsqueeze(1)  # B L, index among the new ones
    chosen = place.clamp(0, new.size(2) - 1)[:, None, :, None].expand(-1, ring.size(1), -1, ring.size(3))
    return torch.where((place >= 0)[:, None, :, None], new.gather(2, chosen), ring)


def ring_unrolled(ring: Tensor, count: Tensor, most: int) -> Tensor:
    """B H most D: the last `most` cells in order of time, after `count` (B) tokens; unwritten ones come first."""
    cells = ring.size(2)
    index = (count.unsqueeze(1) - most + torch.arange(most, device=ring.device)) % cells
    return ring.gather(2, index[:, None, :, None].expand(-1, ring.size(1), -1, ring.size(3)))
