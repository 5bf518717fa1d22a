"""Log-linear attention (Guo et al. 2025, sec. 3): a decaying memory kept in O(log T) parts, the older the coarser.

    o_t = sum_{s <= t} scale_t[level(t, s)] e^(g_{s+1} + ... + g_t) (q_t . k_s) v_s

Seen from token t the past falls into the buckets of a Fenwick tree, one for each 1 among the binary digits of t.  The
bucket of s has level 0 for s = t and otherwise the number of digits of t XOR s.  Buckets only ever merge, so that each
is one matrix, and its level from anywhere later is that of any of its tokens, say the first.

A whole sequence needs no buckets as each token sees them: in blocks of 2^l tokens, the first half of a block is what
all of its second half has at level l, so that a level is one product of half the queries.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.delta.chunks import CHUNK, Decays, chunk_tokens, in_chunks, scalar_decays
from seqstruct.ops.opaque import opaque


class Buckets(NamedTuple):
    """memory: B H L K V, what each level holds as seen from the last token; count: B long, tokens so far."""

    memory: Tensor
    count: Tensor


@opaque(lambda query, scales, key, value, log_decay, real=None: value.new_empty(value.shape))
def log_linear(
    query: Tensor, scales: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, real: Tensor | None = None
) -> Tensor:
    """Readings B H T V after each token of a whole sequence, zeros at padding.

    query, key: B H T K; scales: B H T L; value: B H T V; log_decay: B H T, logarithms, 0 at most; real: B 1 T long, 1
    for a token and 0 for padding, wherever it stands, where key and log_decay are 0, too; None for tokens alone.
    Levels beyond the last are the last.
    O(T (CHUNK (K + V) + K V log(T/CHUNK))) time, O(T (CHUNK + (K + V) log(T/CHUNK)) + T/CHUNK K V) memory.
    """
    inputs = query, scales, key, value, log_decay
    if not query.size(2):
        return value
    if real is None:
        return _log_linear(*inputs)
    tokens_first = real.argsort(dim=-1, descending=True, stable=True)
    readings = _log_linear(*(_in_order(x, tokens_first) for x in inputs))
    return _in_order(readings, tokens_first.argsort(-1)) * real.unsqueeze(-1)


def _in_order(x: Tensor, order: Tensor) -> Tensor:
    """x, B H T ..., by positions B 1 T."""
    batch, heads, length = x.shape[:3]
    row = torch.arange(batch * heads, device=x.device).view(batch, heads, 1) * length
    return x.flatten(0, 2).index_select(0, (row + order).flatten()).view(x.shape)


def _log_linear(query: Tensor, scales: Tensor, key: Tensor, value: Tensor, log_decay: Tensor) -> Tensor:
    length, last, rows = query.size(2), scales.size(-1) - 1, chunk_tokens(query.size(2))
    query, scales, key, value, log_decay = (in_chunks(x, rows) for x in (query, scales, key, value, log_decay))
    begin, end, whole, pair = scalar_decays(log_decay)[:4]
    readings = (query @ key.mT * pair * _inside(scales)) @ value
    memory = (key * end).mT @ value  # of each block of `half` chunks, decayed to its end
    half, level, chunks = 1, rows.bit_length(), query.size(2)
    while half < chunks:
        blocks = (chunks + half - 1) // (2 * half)  # that have a second half
        weights = _seconds(begin, half, blocks) * _seconds(scales[..., min(level, last), None], half, blocks)
        asked = (_seconds(query, half, blocks) * weights).flatten(3, 4)
        found = (asked @ memory[:, :, : 2 * blocks : 2]).unflatten(3, (-1, rows))
        readings = readings + _as_seconds(found, chunks, 0.0)
        first = whole[:, :, : 2 * blocks : 2].unsqueeze(3).expand(-1, -1, -1, half, -1, -1)
        begin = begin * _as_seconds(first, chunks, 1.0)
        even, odd = (slice(start, chunks // (2 * half) * 2, 2) for start in (0, 1))
        memory = memory[:, :, even] * whole[:, :, odd] + memory[:, :, odd]
        whole = whole[:, :, even] * whole[:, :, odd]
        half, level = 2 * half, level + 1
    return readings.flatten(2, 3)[:, :, :length]


def _inside(scales: Tensor) -> Tensor:
    """... R R: of each token in a chunk the scale for every other, for scales ... R L."""
    place = torch.arange(scales.size(-2), device=scales.device)
    level = _level(place.unsqueeze(1), place, scales.size(-1) - 1)
    count = min(scales.size(-1), scales.size(-2).bit_length())
    return torch.einsum("...tl,tsl->...ts", scales[..., :count], F.one_hot(level, count).to(scales.dtype))


def _seconds(x: Tensor, half: int, blocks: int) -> Tensor:
    """B H blocks half ...: the second halves of the first blocks of x: B H n ..., with zeros behind its end."""
    missing = 2 * half * blocks - x.size(2)
    x = F.pad(x, [0, 0] * (x.dim() - 3) + [0, missing]) if missing > 0 else x[:, :, : 2 * half * blocks]
    return x.unflatten(2, (blocks, 2 * half))[:, :, :, half:]


def _as_seconds(x: Tensor, chunks: int, other: float) -> Tensor:
    """B H chunks ...: x: B H blocks half ... as second halves of blocks, `other` elsewhere."""
    inner = [0, 0] * (x.dim() - 4)
    x = F.pad(x, [*inner, x.size(3), 0], value=other).flatten(2, 3)
    return F.pad(x, [*inner, 0, chunks - x.size(2)], value=other)


def log_linear_after(
    state: Buckets,
    query: Tensor,
    scales: Tensor,
    key: Tensor,
    value: Tensor,
    log_decay: Tensor,
    real: Tensor | None = None,
) -> tuple[Tensor, Buckets]:
    """Readings B H T V after each token that follows on a state, and the last state.

    Padding reads as the token before it would.  The rest as above.
    O(T (CHUNK (K + V) + L K V)) time, O(L K V) state.
    """
    real = _all_real(key) if real is None else real
    readings, memory, count = _log_linear_after(*state, query, scales, key, value, log_decay, real)
    return readings, Buckets(memory, count)


def _fake(memory: Tensor, count: Tensor, query: Tensor, scales: Tensor, key: Tensor, value: Tensor, *_: Tensor):
    return tuple(x.new_empty(x.shape) for x in (value, memory, count))


@opaque(_fake)
def _log_linear_after(
    memory: Tensor, count: Tensor, query: Tensor, scales: Tensor, key: Tensor, value: Tensor, log_decay: Tensor,
    real: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    state, readings = Buckets(memory, count), [value[:, :, :0]]
    for start in range(0, query.size(2), CHUNK):
        now = slice(start, start + CHUNK)
        k, v, g, one = (x[:, :, now] for x in (key, value, log_decay, real))
        decays = scalar_decays(g)
        readings.append(_read_chunk(state, query[:, :, now], scales[:, :, now], k, v, decays, one))
        state = _write_chunk(state, k, v, decays, one)
    return torch.cat(readings, 2), *state


def write_buckets(state: Buckets, key: Tensor, value: Tensor, log_decay: Tensor, real: Tensor | None = None) -> Buckets:
    """The state after all tokens, arguments as above."""
    real = _all_real(key) if real is None else real
    return Buckets(*_write_buckets(*state, key, value, log_decay, real))


@opaque(lambda memory, count, *_: (memory.new_empty(memory.shape), count.new_empty(count.shape)))
def _write_buckets(
    memory: Tensor, count: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, real: Tensor
) -> tuple[Tensor, Tensor]:
    state = Buckets(memory, count)
    for start in range(0, key.size(2), CHUNK):
        k, v, g, one = (x[:, :, start : start + CHUNK] for x in (key, value, log_decay, real))
        state = _write_chunk(state, k, v, scalar_decays(g), one)
    return (*state,)


def _all_real(key: Tensor) -> Tensor:
    return torch.ones(key.size(0), 1, key.size(2), dtype=torch.long, device=key.device)


def read_buckets(state: Buckets, query: Tensor, scales: Tensor) -> Tensor:
    """Readings B H T V of one state for queries B H T K with scales B H T L."""
    return _scaled(query, scales) @ state.memory.flatten(2, 3)


def _read_chunk(
    state: Buckets, query: Tensor, scales: Tensor, key: Tensor, value: Tensor, decays: Decays, real: Tensor
) -> Tensor:
    last = scales.size(-1) - 1
    place = _places(state, real)
    inside = _level(place.unsqueeze(-1), place.unsqueeze(-2), last)  # B 1 T S
    outside = _level_of_buckets(place, state.count, last)  # B 1 T L
    inside, outside = (scales.gather(-1, x.expand(-1, scales.size(1), -1, -1)) for x in (inside, outside))
    held = read_buckets(state, query, outside * decays.begin)
    return (query @ key.mT * decays.pair * inside) @ value + held


def _write_chunk(state: Buckets, key: Tensor, value: Tensor, decays: Decays, real: Tensor) -> Buckets:
    size = state.memory.size(2)
    count = state.count + real.sum((1, 2))
    end = (count - 1).clamp_min(0)[:, None, None]
    kept = F.one_hot(_level_of_buckets(end, state.count, size - 1)[:, 0, 0], size).to(key.dtype)  # B L L
    memory = torch.einsum("bjl,bhjkv->bhlkv", kept, state.memory) * decays.whole.unsqueeze(2)
    levels = F.one_hot(_level(end, _places(state, real), size - 1), size).to(key.dtype)  # B 1 T L
    entering = _scaled(key * decays.end, levels)  # B H T L*K
    return Buckets(memory + (entering.mT @ value).unflatten(2, (size, -1)), count)


def _places(state: Buckets, real: Tensor) -> Tensor:
    """B 1 T: which token each is, from 0, or at padding the last token was."""
    return (state.count[:, None, None] + real.cumsum(-1) - 1).clamp_min(0)


def _scaled(query: Tensor, scales: Tensor) -> Tensor:
    """B H T L*K."""
    return (scales.unsqueeze(-1) * query.unsqueeze(-2)).flatten(-2)


def _level(token: Tensor, other: Tensor, last: int) -> Tensor:
    """The level of one token as seen from another, in either order: the digits of their XOR, `last` at most."""
    return torch.frexp((token ^ other).double()).exponent.long().clamp_max(last)


def _level_of_buckets(place: Tensor, count: Tensor, last: int) -> Tensor:
    """B 1 T L: what the buckets of a state of `count` tokens are to later tokens `place`, B 1 T.

    The last level, of whatever age, stays the last.
    """
    level = torch.arange(last, device=count.device)
    first = ((count - 1).clamp_min(0).unsqueeze(1) >> level) << level  # B L, of each bucket
    return F.pad(_level(place.unsqueeze(-1), first[:, None, None], last), (0, 1), value=last)
