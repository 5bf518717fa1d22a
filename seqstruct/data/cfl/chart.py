"""Exact log-probabilities of given strings, summed over all derivations, by a chart over the binary grammar.

Two charts, one indexed by where a span starts and one by where it ends, so that all spans of one width are one
batched matrix product over contiguous slices.  Every terminal counts SCALE times, which keeps the weights of strings
near 1 in float64 (strings of the five languages lose about log 4 a symbol); the scale is taken out at the end.  Spans
that leave the middle of float64 all the same, as of large vocabularies, have a power of two of their own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqstruct.data.cfl.grammar import BinaryGrammar
from seqstruct.data.cfl.hardest import hardest_log_weights
from seqstruct.data.cfl.languages import Language, get_language
from seqstruct.data.cfl.linear import linear_log_weights

SCALE = 4.0
BATCH = 256
CELLS = 1 << 28  # numbers in both charts of a batch, and in the products of all its spans of one width
MIDDLE = 400  # powers of two on both sides of 1


def log_probabilities(language: Language, strings: Sequence[Sequence[int]]) -> np.ndarray:
    """log p(w | l) of each string among those of its length (nats), -inf if it is not in the language.

    strings: terminal ids.  Returns float64, one for each string.
    Raises ValueError on an empty string or a length beyond `languages.MAX_LENGTH`.
    Cost: O(n^3 R) time a string for R rules; O(n^3) for the hardest language, which has an algorithm of its own, and
    O(n R) for a right-linear grammar.
    """
    hardest = language.grammar is get_language("hardest-cfl").grammar  # a file of one's own may have its name
    result = np.full(len(strings), -np.inf)
    log_inside = language.log_inside(max(map(len, strings), default=0))
    for rows, tokens in batches(language.binary, strings):
        length = tokens.size(1)
        if log_inside[length] > -np.inf:
            weights = hardest_log_weights(tokens) if hardest else string_log_weights(language.binary, tokens)
            result[rows] = weights.numpy() - log_inside[length]
    return result


def batches(grammar: BinaryGrammar, strings: Sequence[Sequence[int]]) -> list[tuple[list[int], Tensor]]:
    """Numbers and B x N tokens of strings that share a length, as many together as memory bears.

    Raises ValueError on an empty string.
    """
    by_length: dict[int, list[int]] = defaultdict(list)
    for i, string in enumerate(strings):
        if len(string) == 0:
            raise ValueError(f"string {i + 1} is empty")
        by_length[len(string)].append(i)
    found, pairs = [], 0
    if grammar.longer_firsts.any():  # else nothing is multiplied by pairs
        pairs = len(np.unique(grammar.binary[:, 1])) * len(np.unique(grammar.binary[:, 2]))
    for length, rows in by_length.items():
        most = max(1, min(BATCH, CELLS // (length * max((length + 1) * 2 * grammar.size, pairs))))
        for start in range(0, len(rows), most):
            batch = rows[start : start + most]
            found.append((batch, torch.as_tensor(np.array([strings[i] for i in batch], dtype=np.int64))))
    return found


def string_log_weights(grammar: BinaryGrammar, tokens: Tensor) -> Tensor:
    """Log-weights of strings of one length: B float64 for B x N tokens, summed over derivations (nats)."""
    return (chart_log_weights if grammar.longer_firsts.any() else linear_log_weights)(grammar, tokens)


class Spans(NamedTuple):
    """The weights of all spans of strings of one length N, every terminal counting SCALE times.

    by_start: N x B x (N + 1) x the nonterminals that begin a right-hand side, [i, b, width]; times two to the power of
    exponent, N x B x (N + 1).  whole, whole_exponent: the same for the start symbol over the first `width` symbols,
    B x (N + 1).
    """

    by_start: Tensor
    exponent: Tensor
    whole: Tensor
    whole_exponent: Tensor


def chart_log_weights(grammar: BinaryGrammar, tokens: Tensor) -> Tensor:
    """Log-weights of strings of one length, summed over derivations (nats), -inf where there is none.

    tokens: B x N long, terminal ids.  Returns B float64.  O(B N^3 size^2) time, O(B N^2 size) memory.
    """
    spans = span_weights(grammar, tokens)
    return scaled_log(spans.whole[:, -1], spans.whole_exponent[:, -1]) - tokens.size(1) * math.log(SCALE)


def scaled_log(value: Tensor, exponent: Tensor) -> Tensor:
    """The logarithm of a value times two to the power of an exponent."""
    near = exponent.clamp(-MIDDLE, MIDDLE)
    return torch.ldexp(value, near).log() + (exponent - near) * math.log(2)


def middled(value: Tensor, exponent: Tensor) -> tuple[Tensor, Tensor]:
    """The same numbers with what leaves the middle of float64 moved into the exponent.

    value: (...) x K, exponent: (...), whole numbers in float64.
    """
    _, power = torch.frexp(value.amax(-1))
    far = torch.where(power.abs() > MIDDLE, power, 0).clamp(-1000, 1000).to(exponent.dtype)
    return (torch.ldexp(value, -far[..., None]), exponent + far) if far.any() else (value, exponent)


def span_weights(grammar: BinaryGrammar, tokens: Tensor) -> Spans:
    """The chart of strings of one length, B x N; time and memory as of `chart_log_weights`."""
    batch, length = tokens.shape
    firsts, first_of = np.unique(grammar.binary[:, 1], return_inverse=True)
    seconds, second_of = np.unique(grammar.binary[:, 2], return_inverse=True)
    pairs, pair_of = np.unique(first_of * len(seconds) + second_of, return_inverse=True)
    combine = torch.zeros(len(pairs), grammar.size, dtype=torch.float64)
    combine[torch.as_tensor(pair_of), torch.as_tensor(grammar.binary[:, 0])] = torch.as_tensor(grammar.binary_weight)
    emit = torch.zeros(len(grammar.terminals), grammar.size, dtype=torch.float64)
    nonterminal, terminal = torch.as_tensor(grammar.lexical).unbind(1)
    emit[terminal, nonterminal] = SCALE * torch.as_tensor(grammar.lexical_weight)
    pairs, firsts, seconds = torch.as_tensor(pairs), torch.as_tensor(firsts), torch.as_tensor(seconds)

    by_start = torch.zeros(length, batch, length + 1, len(firsts), dtype=torch.float64)  # [i, b, width]
    by_end = torch.zeros(length + 1, batch, length + 1, len(seconds), dtype=torch.float64)  # [j, b, length - width]
    start_exponent = torch.zeros(by_start.shape[:-1], dtype=torch.float64)
    end_exponent = torch.zeros(by_end.shape[:-1], dtype=torch.float64)
    whole, whole_exponent = torch.zeros(2, batch, length + 1, dtype=torch.float64)
    cells = emit[tokens.T]  # N B size
    exponent, far = torch.zeros(length, batch, dtype=torch.float64), False
    for width in range(1, length + 1):
        spans = length - width + 1
        if width > 1:
            left = by_start[:spans, :, 1:width].flatten(0, 1)
            right = by_end[width:, :, spans:length].flatten(0, 1)
            exponent = torch.zeros(spans, batch, dtype=torch.float64)
            if far:
                both = (start_exponent[:spans, :, 1:width] + end_exponent[width:, :, spans:length]).flatten(0, 1)
                there = (left.amax(-1) > 0) & (right.amax(-1) > 0)
                most = torch.where(there, both, -torch.inf).amax(1, keepdim=True)
                left = torch.ldexp(left, torch.where(there, both - most, 0.0)[..., None])
                exponent = most.nan_to_num(neginf=0.0).view(spans, batch)
            product = torch.bmm(left.transpose(1, 2), right).flatten(1)  # (spans B) (firsts seconds)
            cells = (product[:, pairs] @ combine).view(spans, batch, -1)
        cells, exponent = middled(cells, exponent)
        far = far or bool(exponent.any())
        by_start[:spans, :, width], start_exponent[:spans, :, width] = cells[..., firsts], exponent
        by_end[width:, :, length - width], end_exponent[width:, :, length - width] = cells[..., seconds], exponent
        whole[:, width], whole_exponent[:, width] = cells[0, :, grammar.start], exponent[0]
    return Spans(by_start, start_exponent, whole, whole_exponent)
