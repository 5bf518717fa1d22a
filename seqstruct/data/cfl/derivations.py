"""Derivations of a weighted grammar, drawn from the start symbol down, whatever the length of their strings."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import NamedTuple

from seqstruct.data.cfl.grammar import Grammar


class Node(NamedTuple):
    """A nonterminal with what it derives: nodes and terminals in order."""

    symbol: str
    children: tuple[Node | str, ...]


class Derivations:
    """A grammar to draw from: a nonterminal takes one of its rules in proportion to their weights, which need not sum
    to 1.  A grammar whose derivations grow without end for certain ends in Python's RecursionError."""

    def __init__(self, grammar: Grammar) -> None:
        self.start = grammar.start
        self._rights: dict[str, list[tuple[str, ...]]] = {}
        weights: dict[str, list[float]] = {}
        for left, right, weight in grammar.rules:
            self._rights.setdefault(left, []).append(right)
            weights.setdefault(left, []).append(weight)
        self._cumulated = {left: list(accumulate(each)) for left, each in weights.items()}

    def sample(self, generator: random.Random, symbol: str | None = None) -> Node:
        """A derivation, drawn independently.  symbol: the nonterminal at its root, else the start symbol."""
        symbol = self.start if symbol is None else symbol
        (right,) = generator.choices(self._rights[symbol], cum_weights=self._cumulated[symbol])
        return Node(symbol, tuple(self.sample(generator, s) if s in self._rights else s for s in right))
