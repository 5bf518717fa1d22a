"""A chunk of tokens at once: the decays inside of it, products under them, and what goes on from chunk to chunk.

Rows of a chunk are R; the decay of row j is exp(g_j), g <= 0, one number for a row or one for each channel.  Row s
reaches row t >= s with exp(g_{s+1} + ... + g_t).  No exponent is positive, so nothing overflows, however strong the
decays are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.delta.channels import Levels, after, levels, products
from seqstruct.ops.gpu import takes

CHUNK = 32  # rows at most; a power of two
STRONGEST = -1e4  # exp of it is 0; sums of it keep their digits in float64


class Decays(NamedTuple):
    """begin: ... R 1 or K, from the chunk's beginning to each row; end: from each row to the chunk's end;

    whole: ... K or 1, 1, of the whole chunk; pair: ... R R for decays that are one number a row, 0 for s > t;
    gates, factors: logarithms ... R K and their `levels` (None where kernels do without), for decays of each channel.
    """

    begin: Tensor
    end: Tensor
    whole: Tensor
    pair: Tensor | None
    gates: Tensor | None = None
    factors: Levels | None = None


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
    return Decays(begin, end, begin[..., -1:, :], pair)


def channel_decays(log_decay: Tensor) -> Decays:
    """For log_decay: ... R K, R a power of two."""
    begin = log_decay.cumsum(-2).exp()
    factors = None if takes(log_decay) else levels(log_decay)
    return Decays(begin, after(log_decay).exp(), begin[..., -1:, :].mT, None, log_decay, factors)


def decayed_products(query: Tensor, key: Tensor, decays: Decays | None) -> Tensor:
    """... R R: q_t . k_s decayed from s to t, 0 for s > t; for query, key: ... R K."""
    if decays is None:
        return (query @ key.mT).tril()
    if decays.pair is not None:
        return query @ key.mT * decays.pair
    return products(query, key, decays.gates, decays.factors)


def pass_on(
    memory: Tensor, key: Tensor, value: Tensor, taken: Tensor | None = None, whole: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """From chunk to chunk: U = value - taken S, S <- whole S + key^T U.

    memory: B H K V; key: B H n R K, decayed to the chunk's end; value: B H n R V; taken: B H n R K; whole: B H n K|1 1.
    Returns the memories at the beginning of each chunk B H n K V, the last one B H K V, and U B H n R V.  On CUDA
    devices one kernel does all of it, and is differentiable once.
    """
    if takes(memory, key, value, taken, whole):
        from seqstruct.ops.delta.triton import triton_pass_on

        return triton_pass_on(memory, key, value, taken, whole)
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
