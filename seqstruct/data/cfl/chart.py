"""Exact log-probabilities of given strings, summed over all derivations, by a chart over the binary grammar.

Two charts, one indexed by where a span starts and one by where it ends, so that all spans of one width are one
batched matrix product over contiguous slices.  Every terminal counts SCALE times, which keeps the weights of strings
near 1 in float64 (strings of these languages lose about log 4 a symbol); the scale is taken out at the end.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seqstruct.data.cfl.grammar import BinaryGrammar
from seqstruct.data.cfl.hardest import hardest_log_weights
from seqstruct.data.cfl.languages import Language

SCALE = 4.0
BATCH = 256


def log_probabilities(language: Language, strings: Sequence[Sequence[int]]) -> np.ndarray:
    """log p(w | l) of each string among those of its length (nats), -inf if it is not in the language.

    strings: terminal ids.  Returns float64, one for each string.
    Raises ValueError on an empty string or a length beyond `languages.MAX_LENGTH`.
    Cost: O(n^3 R) time a string for R rules; O(n^3) for the hardest language, which has an algorithm of its own.
    """
    by_length: dict[int, list[int]] = defaultdict(list)
    for i, string in enumerate(strings):
        if len(string) == 0:
            raise ValueError(f"string {i + 1} is empty")
        by_length[len(string)].append(i)
    own = language.name == "hardest-cfl"
    result = np.full(len(strings), -np.inf)
    log_inside = language.log_inside(max(by_length, default=0))
    for length, rows in by_length.items():
        if log_inside[length] == -np.inf:
            continue
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            tokens = torch.as_tensor(np.array([strings[i] for i in batch], dtype=np.int64))
            weights = hardest_log_weights(tokens) if own else chart_log_weights(language.binary, tokens)
            result[batch] = weights.numpy() - log_inside[length]
    return result


def chart_log_weights(grammar: BinaryGrammar, tokens: Tensor) -> Tensor:
    """Log-weights of strings of one length, summed over derivations (nats), -inf where there is none.

    tokens: B x N long, terminal ids.  Returns B float64.  O(B N^3 size^2) time, O(B N^2 size) memory.
    """
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
    cells = emit[tokens.T]  # N B size
    for width in range(1, length + 1):
        spans = length - width + 1
        if width > 1:
            left = by_start[:spans, :, 1:width].flatten(0, 1)
            right = by_end[width:, :, spans:length].flatten(0, 1)
            product = torch.bmm(left.transpose(1, 2), right).flatten(1)  # (spans B) (firsts seconds)
            cells = (product[:, pairs] @ combine).view(spans, batch, -1)
        by_start[:spans, :, width] = cells[..., firsts]
        by_end[width:, :, length - width] = cells[..., seconds]
    return cells[0, :, grammar.start].log() - length * math.log(SCALE)
