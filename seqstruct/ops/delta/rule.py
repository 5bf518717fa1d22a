"""The gated delta rule and decaying linear attention, a chunk at a time (Yang et al. 2024, sec. 3.2; 2025, sec. 3.3).

Inside of a chunk that begins with memory S the vectors u_t = beta_t (v_t - (decayed memory)^T k_t) that are written
solve a triangular system: (I + A) U = beta V - beta e^F K S, with A the decayed products of keys below the diagonal,
each row times its beta.  So U = X_V - X_K S, X the solution for beta [V, e^F K], found for all chunks at once; and

    O = P U + e^F Q S,     S' = e^F_R S + E^T U

with P the decayed products of queries and keys, and E the keys decayed to the chunk's end.  Without beta, U = V.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.compiled import usable
from seqstruct.ops.delta.chunks import (
    Decays,
    channel_decays,
    chunk_tokens,
    decayed_products,
    in_chunks,
    pass_on,
    scalar_decays,
)
from seqstruct.ops.delta.compiled import compiled_rule
from seqstruct.ops.gpu import takes
from seqstruct.ops.opaque import opaque


def _fake_rule(
    query: Tensor, key: Tensor, value: Tensor, log_decay: object = None, beta: object = None, memory: object = None,
    steps: int = 1,
) -> tuple[Tensor, Tensor]:
    return value.new_empty(*query.shape[:3], value.size(3)), _fake_memory(None, key, value)


def _fake_memory(memory: object, key: Tensor, value: Tensor, *_: object) -> Tensor:
    return key.new_empty(*key.shape[:2], key.size(-1), value.size(-1))


@opaque(_fake_rule)
def gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    log_decay: Tensor | None = None,
    beta: Tensor | None = None,
    memory: Tensor | None = None,
    steps: int = 1,
) -> tuple[Tensor, Tensor]:
    """Readings B H T V after each token, and the last memory B H K V.

    query: B H T K.  key, value: B H T*steps K or V, `steps` of them for each token, written one after the other.
    log_decay: B H T, or B H T K for a decay of each channel of the keys (one step a token alone), logarithms, 0 at
    most; None for no decay.  A token's decay comes before its writings.
    beta: B H T*steps, how much of the difference between value and what is remembered is written; None for sums of
    k v^T.  memory: B H K V, or None for the empty one.
    A token with log_decay 0 and beta 0 (without beta, key 0) changes nothing.
    Raises ValueError on decays of channels with several steps.
    On CPUs a kernel goes through the tokens, in O(T steps K V) time and O(T steps (K + V)) memory with the backward
    pass, and has first derivatives only.  In chunks O(T steps (CHUNK (K + V) + K V)) time and
    O(T steps (CHUNK + K + V) + T/CHUNK K V) memory.
    """
    if memory is None:
        memory = key.new_zeros(*key.shape[:2], key.size(-1), value.size(-1))
    length = query.size(2)
    if not length:
        return value[:, :, :0], memory
    _check_steps(log_decay, steps)
    if usable(query, key, value, log_decay, beta, memory) and not takes(memory, key, value):
        return compiled_rule(query, key, value, log_decay, beta, memory, steps)
    chunks = _chunks(key, value, log_decay, beta, steps)
    query = in_chunks(query, chunks.key.size(3) // steps)
    products = _products_of_queries(query, chunks.key, chunks.decays, steps)
    before, memory, written = _pass_on(memory, chunks)
    if chunks.decays is not None:
        query = query * chunks.decays.begin[..., steps - 1 :: steps, :]
    return (products @ written + query @ before).flatten(2, 3)[:, :, :length], memory


def write(
    memory: Tensor,
    key: Tensor,
    value: Tensor,
    log_decay: Tensor | None = None,
    beta: Tensor | None = None,
    steps: int = 1,
) -> Tensor:
    """The memory B H K V after all tokens, as `gated_delta_rule`; the old one is consumed.

    One token is written without chunks, in place where no gradient is recorded.
    """
    if key.size(2) == steps:
        return _write_token(memory, key, value, log_decay, beta)
    return memory if not key.size(2) else _write_chunks(memory, key, value, log_decay, beta, steps)


@opaque(_fake_memory)
def _write_chunks(
    memory: Tensor, key: Tensor, value: Tensor, log_decay: Tensor | None, beta: Tensor | None, steps: int
) -> Tensor:
    _check_steps(log_decay, steps)
    if usable(key, value, log_decay, beta, memory) and not takes(memory, key, value):
        return compiled_rule(key[:, :, :0], key, value, log_decay, beta, memory, steps)[1]
    return _pass_on(memory, _chunks(key, value, log_decay, beta, steps))[1]


def _write_token(memory: Tensor, key: Tensor, value: Tensor, log_decay: Tensor | None, beta: Tensor | None) -> Tensor:
    shape = memory.shape
    memory = memory.flatten(0, 1)
    recorded = torch.is_grad_enabled()
    if log_decay is not None:
        decay = log_decay.exp().flatten(0, 1)
        decay = decay.unsqueeze(-1) if decay.dim() == 2 else decay.mT  # G 1 1 or G K 1
        memory = memory * decay if recorded else memory.mul_(decay)
    for row in range(key.size(2)):
        k, new = key[:, :, row, None].flatten(0, 1), value[:, :, row, None].flatten(0, 1)
        if beta is not None:
            new = (new - k @ memory) * beta[:, :, row].flatten()[:, None, None]
        memory = torch.baddbmm(memory, k.mT, new) if recorded else memory.baddbmm_(k.mT, new)
    return memory.view(shape)


def _check_steps(log_decay: Tensor | None, steps: int) -> None:
    if log_decay is not None and log_decay.dim() == 4 and steps > 1:
        raise ValueError(f"gated_delta_rule: decays of channels take one step a token, not {steps}")


class _Chunks(NamedTuple):
    """key: B H n R K; value: B H n R V, X_V; taken: B H n R K, X_K, or None without beta; decays, or None."""

    key: Tensor
    value: Tensor
    taken: Tensor | None
    decays: Decays | None


def _chunks(key: Tensor, value: Tensor, log_decay: Tensor | None, beta: Tensor | None, steps: int) -> _Chunks:
    tokens = max(1, chunk_tokens(key.size(2) // steps) // steps)
    key, value = in_chunks(key, tokens * steps), in_chunks(value, tokens * steps)
    decays = None if log_decay is None else _decays(in_chunks(log_decay, tokens), steps)
    if beta is None:
        return _Chunks(key, value, None, decays)
    beta = in_chunks(beta, tokens * steps).unsqueeze(-1)
    scaled = key * beta
    system = decayed_products(scaled, key, decays)
    right = torch.cat([value * beta, scaled if decays is None else scaled * decays.begin], -1)
    # Transposed, a matrix with contiguous rows is laid out as the solver wants it.
    solved = torch.linalg.solve_triangular(system.mT, right.mT, upper=True, left=False, unitriangular=True).mT
    return _Chunks(key, *solved.split([value.size(-1), key.size(-1)], -1), decays)


def _decays(log_decay: Tensor, steps: int) -> Decays:
    """For each row, log_decay: B H n R/steps, or B H n R K."""
    if log_decay.dim() == 4:
        return scalar_decays(F.pad(log_decay.unsqueeze(-1), (0, steps - 1)).flatten(-2))
    return channel_decays(log_decay)


def _products_of_queries(query: Tensor, key: Tensor, decays: Decays | None, steps: int) -> Tensor:
    """Decayed products of the queries, each after its token's last row, with the rows up to there."""
    if steps == 1:
        return decayed_products(query, key, decays)
    products, rows = query @ key.mT, key.size(-2)
    pair = products.new_ones(rows, rows).tril() if decays is None else decays.pair
    return products * pair[..., steps - 1 :: steps, :]


def _pass_on(memory: Tensor, chunks: _Chunks) -> tuple[Tensor, Tensor, Tensor]:
    key, value, taken, decays = chunks
    if decays is None:
        return pass_on(memory, key, value, taken)
    return pass_on(memory, key * decays.end, value, taken, decays.whole)
