"""Products of keys under decays inside of chunks: what a memory's recurrence becomes when a chunk is taken at once.

Rows of a chunk are R; the decay of row j is exp(g_j), g <= 0, one number for a row or one for each channel.  With
F_t = g_1 + ... + g_t from the chunk's beginning, row s reaches row t >= s with exp(F_t - F_s).  No exponent is
positive, so nothing overflows, however strong the decays are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 32  # rows at most; a power of two
STRONGEST = -1e4  # exp of it is 0; sums of it keep their digits in float64


class Decays(NamedTuple):
    """begin: ... R 1 or K, from the chunk's beginning to each row; end: from each row to the chunk's end;

    whole: ... K or 1, 1, of the whole chunk; pair: ... R R for decays that are one number a row, 0 for s > t;
    gates: ... R K, logarithms, for decays that are one for each channel.
    """

    begin: Tensor
    end: Tensor
    whole: Tensor
    pair: Tensor | None
    gates: Tensor | None


def in_chunks(x: Tensor, rows: int) -> Tensor:
    """B H n R ... for x: B H T ..., filled up with zeros to a multiple of `rows`."""
    missing = -x.size(2) % rows
    x = F.pad(x, [0, 0] * (x.dim() - 3) + [0, missing]) if missing else x.contiguous()
    return x.unflatten(2, (-1, rows))


def chunk_tokens(length: int) -> int:
    """Tokens of a chunk of a sequence of `length` >= 1: a power of two, CHUNK at most."""
    return min(CHUNK, 1 << (length - 1).bit_length())


def scalar_decays(log_decay: Tensor) -> Decays:
    """For log_decay: ... R."""
    rows = log_decay.size(-1)
    # Differences of logarithms that may be in the thousands: double precision for them alone.
    total = log_decay.clamp_min(STRONGEST).double().cumsum(-1)
    future = torch.ones(rows, rows, dtype=torch.bool, device=log_decay.device).triu(1)
    pair = (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(future, -math.inf).to(log_decay.dtype).exp()
    begin = total.to(log_decay.dtype).exp().unsqueeze(-1)
    end = (total[..., -1:] - total).to(log_decay.dtype).exp().unsqueeze(-1)
    return Decays(begin, end, begin[..., -1:, :], pair, None)


def channel_decays(log_decay: Tensor) -> Decays:
    """For log_decay: ... R K, R a power of two."""
    begin, end = log_decay, torch.zeros_like(log_decay)
    for half in halves(log_decay.size(-2)):
        begin, end = joined(begin, end, half)
    begin = begin.exp()
    return Decays(begin, end.exp(), begin[..., -1:, :].transpose(-1, -2), None, log_decay)


def halves(rows: int) -> list[int]:
    """1, 2, 4, ... below `rows`."""
    return [2**i for i in range(rows.bit_length() - 1)]


def joined(begin: Tensor, end: Tensor, half: int) -> tuple[Tensor, Tensor]:
    """Sums of logarithms from the beginning and to the end of blocks of 2 * half rows, from those of half.

    Sums of numbers of one sign, without a difference in which digits would be lost.
    """
    first, second = begin.unflatten(-2, (-1, 2, half)).unbind(-3)
    begin = torch.stack([first, second + first[..., -1:, :]], -3).flatten(-4, -2)
    whole = second[..., -1:, :]
    first, second = end.unflatten(-2, (-1, 2, half)).unbind(-3)
    return begin, torch.stack([first + whole, second], -3).flatten(-4, -2)


def decayed_products(query: Tensor, key: Tensor, decays: Decays | None) -> Tensor:
    """... R R: q_t . k_s decayed from s to t, 0 for s > t; for query, key: ... R K."""
    if decays is None:
        return (query @ key.transpose(-1, -2)).tril()
    if decays.pair is not None:
        return query @ key.transpose(-1, -2) * decays.pair
    products = (query * key).sum(-1)[..., None, None]  # ... R 1 1, blocks of one row
    begin, end = decays.gates, torch.zeros_like(decays.gates)
    for half in halves(query.size(-2)):
        later = (query * begin.exp()).unflatten(-2, (-1, 2, half))[..., 1, :, :]
        earlier = (key * end.exp()).unflatten(-2, (-1, 2, half))[..., 0, :, :]
        first, second = products.unflatten(-3, (-1, 2)).unbind(-3)
        below = torch.cat([later @ earlier.transpose(-1, -2), second], -1)
        products = torch.cat([F.pad(first, (0, half)), below], -2)
        begin, end = joined(begin, end, half)
    return products.squeeze(-3)


def decayed_sums(weights: Tensor, value: Tensor, decays: Decays) -> Tensor:
    """... R K: the sum over s <= t of weights[t, s] value_s, each channel decayed from s to t.

    weights: ... R R; value: ... R K; decays of channels.
    """
    diagonal = weights.diagonal(dim1=-2, dim2=-1).unsqueeze(-1) * value
    sums = diagonal
    begin, end = decays.gates, torch.zeros_like(decays.gates)
    for half in halves(value.size(-2)):
        blocks = weights.unflatten(-1, (-1, 2, half))[..., 0, :].unflatten(-3, (-1, 2, half))[..., 1, :, :, :]
        below = blocks.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)  # ... blocks half half
        earlier = (value * end.exp()).unflatten(-2, (-1, 2, half))[..., 0, :, :]
        later = begin.exp().unflatten(-2, (-1, 2, half))[..., 1, :, :] * (below @ earlier)
        sums = sums + F.pad(later, (0, 0, half, 0)).flatten(-3, -2)
        begin, end = joined(begin, end, half)
    return sums


def pass_on(
    memory: Tensor, key: Tensor, value: Tensor, taken: Tensor | None = None, whole: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """From chunk to chunk: U = value - taken S, S <- whole S + key^T U.

    memory: B H K V; key: B H n R K, decayed to the chunk's end; value: B H n R V; taken: B H n R K; whole: B H n K|1 1.
    Returns the memories at the beginning of each chunk B H n K V, the last one B H K V, and U B H n R V.
    """
    chunks = key.size(2)
    before, written = [], []
    takings = [None] * chunks if taken is None else taken.unbind(2)
    wholes = [None] * chunks if whole is None else whole.unbind(2)
    for k, new, take, kept in zip(key.unbind(2), value.unbind(2), takings, wholes, strict=True):
        before.append(memory)
        new = new if take is None else new - take @ memory
        written.append(new)
        memory = (memory if kept is None else kept * memory) + k.mT @ new
    return torch.stack(before, 2), memory, torch.stack(written, 2)
