"""Exact probabilities of prefixes, and with them of each next symbol, where lengths are drawn uniformly.

A string is drawn as for a data folder: its length l uniformly among those given, then the string by p(w | l).  A prefix
that ends in the middle of a derivation cuts a path of open nonterminals: each of them starts within the prefix, the
last where it ends, and what stands to its right is free (Jelinek and Lafferty 1991, who sum over all lengths).  Here
the number of free symbols is counted along the path,

    entered[j, s, C] = sum over i < j and A -> B C of  weight  inside[i, j, B]  open[i, s, A]
    open[i, s, B]    = entered[i, s, B] + sum over r < s and A -> B C of  weight  open[i, r, A]  free[s - r, C]

with free the weights by length of `Language.inside`, so that one pass gives all prefixes of a string, for all lengths:

    p(first k symbols) = sum over s, A and n > k + s of  q(n)  entered[k, s, A]  free[n - k - s, A]
                         + q(k)  inside[0, k, S]

where q(n) is one over the number of lengths and Z(n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seqstruct.data.cfl.chart import CELLS, SCALE, Spans, batches, middled, scaled_log, span_weights
from seqstruct.data.cfl.grammar import BinaryGrammar
from seqstruct.data.cfl.languages import Language
from seqstruct.data.cfl.linear import read

SMALL_BATCH = 32


def prefix_log_probabilities(
    language: Language, strings: Sequence[Sequence[int]], lengths: Sequence[int]
) -> list[np.ndarray]:
    """Log-probability of each prefix of each string, the empty one and the string itself included (nats).

    strings: terminal ids.  lengths: that a string may have, all alike probable.  Returns, for a string of N symbols,
    N + 1 float64, -inf where no string of these lengths begins so, or all that do have an end that weighs less than
    1e-308 of the strings of its length; for probabilities of the next symbol, and of the end, subtract.
    Raises ValueError on an empty string and on a length that the language does not have.
    Cost: O(N^2 H R + N H^2 size^2) time a string besides `log_probabilities`, H the greatest length and R the pairs of
    nonterminals that rules connect; O(N R) for a right-linear grammar.
    """
    lengths = sorted(set(lengths))
    log_inside = language.log_inside(max(lengths, default=0))
    for length in lengths:
        if length < 1 or log_inside[length] == -np.inf:
            raise ValueError(f"{language.name} has no string of length {length}")
    if not lengths:
        raise ValueError("expected one length or more, got none")
    longest, grammar = lengths[-1], language.binary
    chance = torch.zeros(longest + 1, dtype=torch.float64)
    chance[lengths] = torch.as_tensor(np.exp(-log_inside[lengths])) / len(lengths)
    free = torch.as_tensor(language.inside(longest).copy())  # (longest + 1) x size
    of = _read_prefixes if not grammar.longer_firsts.any() else _Paths(grammar, free)
    found: list[np.ndarray] = [np.empty(0)] * len(strings)
    for rows, tokens in batches(grammar, strings):
        most = max(1, min(SMALL_BATCH, CELLS // (tokens.size(1) * grammar.size**2)))
        each = (values for part in tokens.split(most) for values in of(grammar, part, free, chance).numpy())
        for row, values in zip(rows, each, strict=True):
            found[row] = values
    return found


def _completions(free: Tensor, chance: Tensor, at: int) -> Tensor:
    """[s, A]: weight of what may follow A at this position where s free symbols stand after it, by the chance of the
    length that comes out: (longest - at) x size."""
    longest = len(chance) - 1
    later = chance[at:]  # of n - at
    rows = [later[s + 1 :] @ free[1 : longest - at - s + 1] for s in range(longest - at)]
    return torch.stack(rows) if rows else free.new_zeros(0, free.size(1))


def _ended(chance: Tensor, at: int) -> float:
    return float(chance[at]) if at < len(chance) else 0.0


def _read_prefixes(grammar: BinaryGrammar, tokens: Tensor, free: Tensor, chance: Tensor) -> Tensor:
    """B x (N + 1), of a right-linear grammar."""
    pending, ended, log_scale = read(grammar, tokens)
    found = torch.full_like(log_scale, -torch.inf)
    for k in range(min(tokens.size(1), len(chance) - 1) + 1):
        following = chance[k + 1 :] @ free[1 : len(chance) - k]
        found[:, k] = (pending[:, k] @ following + _ended(chance, k) * ended[:, k]).log() + log_scale[:, k]
    return found


class _Paths:
    """Open paths of a grammar that is not right-linear.

    left_corners: [s, A, B], weight of the paths from A down first children to B with s free symbols to the right.
    """

    def __init__(self, grammar: BinaryGrammar, free: Tensor):
        size, longest = grammar.size, len(free) - 1
        parent, first, second = torch.as_tensor(grammar.binary).unbind(1)
        weight = torch.as_tensor(grammar.binary_weight)
        steps = torch.zeros(longest, size * size, dtype=torch.float64)
        steps.index_add_(1, parent * size + first, free[:longest, second] * weight)
        steps = steps.view(longest, size, size)
        self.left_corners = torch.zeros_like(steps)
        if longest:
            self.left_corners[0] = torch.eye(size, dtype=torch.float64)
        for s in range(1, longest):
            self.left_corners[s] = torch.bmm(self.left_corners[:s].flip(0), steps[1 : s + 1]).sum(0)
        firsts = torch.unique(first)
        number = torch.zeros(size, dtype=torch.long)
        number[firsts] = torch.arange(len(firsts))
        self.moves = torch.zeros(len(firsts), size * size, dtype=torch.float64)  # firsts x (parent, second)
        self.moves.index_put_((number[first], parent * size + second), weight, accumulate=True)

    def __call__(self, grammar: BinaryGrammar, tokens: Tensor, free: Tensor, chance: Tensor) -> Tensor:
        """B x (N + 1)."""
        spans = span_weights(grammar, tokens)
        (batch, length), longest, size = tokens.shape, len(chance) - 1, grammar.size
        found = torch.full((batch, length + 1), -torch.inf, dtype=torch.float64)
        last = min(length, longest)
        opened = torch.zeros(last + 1, batch, longest, size, dtype=torch.float64)
        exponent = torch.zeros(last + 1, batch, dtype=torch.float64)
        for at in range(last + 1):
            rest = longest - at
            entered = torch.zeros(batch, rest, size, dtype=torch.float64)
            if at == 0:
                entered[:, :1, grammar.start] = 1
            elif rest:
                entered, exponent[at] = self._entered(spans, opened, exponent, at, rest)
            going_on = (entered * _completions(free, chance, at)).sum((1, 2))
            logs = [scaled_log(going_on, exponent[at])]
            if at:
                logs.append(scaled_log(spans.whole[:, at], spans.whole_exponent[:, at]) + math.log(_ended(chance, at))
                            if _ended(chance, at) else torch.full_like(going_on, -torch.inf))
            found[:, at] = torch.stack(logs).logsumexp(0) - at * math.log(SCALE)
            for s in range(rest):
                further = self.left_corners[: rest - s].permute(1, 0, 2).flatten(1)  # A (s B)
                opened[at, :, s:rest] += (entered[:, s] @ further).view(batch, rest - s, size)
        return found

    def _entered(
        self, spans: Spans, opened: Tensor, exponent: Tensor, at: int, rest: int
    ) -> tuple[Tensor, Tensor]:
        """B x rest x size, what is entered at a position, and its exponent."""
        starts = torch.arange(at)
        inside = spans.by_start[starts, :, at - starts]  # at B firsts
        both = exponent[:at] + spans.exponent[starts, :, at - starts]
        there = (inside.amax(-1) > 0) & (opened[:at].flatten(2).amax(-1) > 0)
        most = torch.where(there, both, -torch.inf).amax(0)
        inside = torch.ldexp(inside, torch.where(there, both - most, 0.0)[..., None])
        batch, size = inside.size(1), opened.size(-1)
        moves = (inside @ self.moves).view(at, batch, size, size)
        moves = moves.transpose(0, 1).flatten(1, 2)  # B (at parent) second
        before = opened[:at, :, :rest].permute(1, 2, 0, 3).flatten(2)  # B rest (at parent)
        entered = torch.bmm(before, moves)
        value, power = middled(entered.flatten(1), most.nan_to_num(neginf=0.0))
        return value.view_as(entered), power
