"""Exact sampling of strings given their length, all strings at once.

A nonterminal that is to derive n symbols picks a rule and a split with probability proportional to the inside weights
of the two parts; all nonterminals pending in all strings pick together, one wave for each level of the derivations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from seqstruct.data.cfl.languages import Language


class _Choices(NamedTuple):
    """Ways to expand (nonterminal A, length n), in lists one after another; list number A * width + n.

    begin, end: of each list.  cumulated: running sum over all lists, each of which adds 1, so that a draw keeps its
    precision wherever its list stands.  first, second: the two parts; of a terminal, `first` is its id and `second`
    is -1.  split: length of the first part.
    """

    width: int
    begin: np.ndarray
    end: np.ndarray
    cumulated: np.ndarray
    first: np.ndarray
    second: np.ndarray
    split: np.ndarray


@lru_cache(maxsize=8)
def _choices(language: Language, max_length: int) -> _Choices:
    binary, inside = language.binary, language.inside(max_length)
    n, k = np.tril_indices(max_length + 1, -1)  # lengths and splits with 1 <= k < n
    n, k = n[k > 0], k[k > 0]
    width = max_length + 1
    lists = [binary.lexical[:, 0] * width + 1]
    weights, first, second, split = [binary.lexical_weight], [binary.lexical[:, 1]], [], []
    second.append(np.full(len(binary.lexical), -1))
    split.append(np.zeros(len(binary.lexical), dtype=np.int64))
    splits = {True: (n, k), False: (n[k == 1], k[k == 1])}
    for (left, b, c), weight, longer in zip(binary.binary, binary.binary_weight, binary.longer_firsts, strict=True):
        n, k = splits[bool(longer)]
        total = weight * inside[k, b] * inside[n - k, c]
        there = total > 0
        lists.append(left * width + n[there])
        weights.append(total[there])
        first.append(np.full(len(lists[-1]), b))
        second.append(np.full(len(lists[-1]), c))
        split.append(k[there])
    which = np.concatenate(lists)
    order = np.argsort(which, kind="stable")
    which = which[order]
    weight = np.concatenate(weights)[order] / inside.T.reshape(-1)[which]
    edges = np.searchsorted(which, np.arange(binary.size * width + 1))
    columns = [np.concatenate(column)[order] for column in (first, second, split)]
    return _Choices(width, edges[:-1], edges[1:], np.cumsum(weight), *columns)


def sample_strings(language: Language, lengths: Sequence[int], generator: np.random.Generator) -> list[np.ndarray]:
    """One string for each length, drawn from p(w | l), independently.

    lengths: valid lengths of the language.  Returns arrays of terminal ids, int64.
    Raises ValueError if the language has no string of one of the lengths.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    if len(lengths) == 0:
        return []
    longest = int(lengths.max())
    impossible = lengths[(lengths < 1) | ~np.isfinite(language.log_inside(longest)[lengths])]
    if len(impossible):
        raise ValueError(f"{language.name} has no string of length {impossible[0]}")
    choices = _choices(language, longest)
    ends = np.cumsum(lengths)
    symbols = np.empty(ends[-1], dtype=np.int64)
    place, number, size = ends - lengths, np.full(len(lengths), language.binary.start), lengths
    while len(place):
        which = number * choices.width + size
        begin, end = choices.begin[which], choices.end[which]
        low = np.where(begin > 0, choices.cumulated[begin - 1], 0.0)
        draw = low + generator.random(len(which)) * (choices.cumulated[end - 1] - low)
        pick = np.clip(np.searchsorted(choices.cumulated, draw, side="right"), begin, end - 1)
        first, second, split = choices.first[pick], choices.second[pick], choices.split[pick]
        terminal = second < 0
        symbols[place[terminal]] = first[terminal]
        more = ~terminal
        place, size, split = place[more], size[more], split[more]
        place = np.concatenate([place, place + split])
        number = np.concatenate([first[more], second[more]])
        size = np.concatenate([split, size - split])
    return np.split(symbols, ends[:-1])
