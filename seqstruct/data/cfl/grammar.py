"""Probabilistic context-free grammars: removal of empty and unary rules, binary form, inside weights by length.

Weights are probabilities; logarithms are natural.  A symbol is a terminal if the grammar lists it as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from seqstruct.data.cfl.totals import closure, grown, total_weights

GRAMMAR_FORMS = ("published", "as-written")


class Rule(NamedTuple):
    """`left -> right` with its weight (a probability, more than 0); an empty `right` derives the empty string."""

    left: str
    right: tuple[str, ...]
    weight: float


@dataclass(frozen=True)
class Grammar:
    """A weighted context-free grammar: terminals in the order of their ids, the start symbol, the rules."""

    terminals: tuple[str, ...]
    start: str
    rules: tuple[Rule, ...]

    @property
    def nonterminals(self) -> tuple[str, ...]:
        """Left-hand sides, in the order in which they first appear."""
        return tuple(dict.fromkeys(rule.left for rule in self.rules))


@dataclass(frozen=True)
class BinaryGrammar:
    """A grammar whose rules are A -> B C and A -> terminal alone; it derives no empty string.

    start: number of the start symbol.  size: number of nonterminals.
    binary: R x 3 long, (A, B, C) of each binary rule; binary_weight: R float64.
    lexical: L x 2 long, (A, terminal id); lexical_weight: L float64.
    """

    terminals: tuple[str, ...]
    start: int
    size: int
    binary: np.ndarray
    binary_weight: np.ndarray
    lexical: np.ndarray
    lexical_weight: np.ndarray

    def inside_by_length(self, max_length: int) -> np.ndarray:
        """Total weight of the strings of each length that each nonterminal derives.

        Returns (max_length + 1) x size float64; row 0 is zero.  O(max_length^2 R) time.
        """
        inside = np.zeros((max_length + 1, self.size))
        if max_length >= 1:
            np.add.at(inside[1], self.lexical[:, 0], self.lexical_weight)
        left, first, second = self.binary.T
        longer = self.longer_firsts
        for length in range(2, max_length + 1):
            pairs = inside[1, first] * inside[length - 1, second]
            pairs[longer] = np.einsum(
                "kr,kr->r", inside[1:length, first[longer]], inside[length - 1 : 0 : -1, second[longer]]
            )
            np.add.at(inside[length], left, self.binary_weight * pairs)
        return inside

    @property
    def longer_firsts(self) -> np.ndarray:
        """Whether the first part of each binary rule may be longer than one symbol; of right-linear grammars none."""
        return np.isin(self.binary[:, 1], self.binary[:, 0])


def to_binary(grammar: Grammar, form: str) -> BinaryGrammar:
    """The binary form of a grammar; it derives the same non-empty strings with the same weights.

    form: "published" leaves out the unary rules of the start symbol where it is the root of a derivation (not where
    it stands inside one), and divides by the weight that is left.  The released sampler of the stack attention paper
    does so, and its results are relative to that distribution.  "as-written" keeps every rule.
    Raises ValueError for another form, InfiniteWeights where empty and unary rules give a string infinite weight.
    """
    if form not in GRAMMAR_FORMS:
        raise ValueError(f"a grammar is taken {' or '.join(GRAMMAR_FORMS)}, not {form!r}")
    empty = dict.fromkeys(grammar.terminals + grammar.nonterminals, 0.0)
    empty |= total_weights(grammar.rules, grammar.terminals, 0.0)
    weights = _without_empty(grammar, empty)
    terminals = set(grammar.terminals)
    unary = {rule: w for rule, w in weights.items() if len(rule[1]) == 1 and rule[1][0] not in terminals}
    proper = {rule: w for rule, w in weights.items() if rule not in unary}
    names = grammar.nonterminals
    index = {name: i for i, name in enumerate(names)}
    steps = np.zeros((len(names), len(names)))
    for (left, (right,)), weight in unary.items():
        steps[index[left], index[right]] += weight
    chains = closure(steps, names)
    closed: dict[tuple[str, tuple[str, ...]], float] = {}
    for (left, right), weight in proper.items():
        for i in np.flatnonzero(chains[:, index[left]]):
            closed[names[i], right] = closed.get((names[i], right), 0.0) + chains[i, index[left]] * weight
    start = grammar.start
    if form == "published":
        start = grammar.start + " at the root"
        lost = sum(w * (1 - empty[right]) for (left, (right,)), w in unary.items() if left == grammar.start)
        kept = 1 - empty[grammar.start] - lost
        closed.update({(start, right): w / kept for (left, right), w in proper.items() if left == grammar.start})
    return _binarised(grammar.terminals, start, closed)


def _without_empty(grammar: Grammar, empty: Mapping[str, float]) -> dict[tuple[str, tuple[str, ...]], float]:
    """Rules over symbols that derive non-empty strings only: every symbol that may be empty is kept or left out."""
    weights: dict[tuple[str, tuple[str, ...]], float] = {}
    longer = _not_only_empty(grammar)
    for rule in grammar.rules:
        choices = [((s,),) * (s in longer) + ((),) * (empty[s] > 0) for s in rule.right]
        for kept in product(*choices):
            right = sum(kept, ())
            weight = rule.weight
            for symbol, there in zip(rule.right, kept, strict=True):
                weight *= 1.0 if there else empty[symbol]
            if right:
                weights[rule.left, right] = weights.get((rule.left, right), 0.0) + weight
    return weights


def _not_only_empty(grammar: Grammar) -> set[str]:
    """The symbols that derive strings beside the empty one."""
    rules = grammar.rules
    return grown(set(grammar.terminals), lambda found: {r.left for r in rules if not found.isdisjoint(r.right)})


def _binarised(
    terminals: tuple[str, ...], start: str, weights: Mapping[tuple[str, tuple[str, ...]], float]
) -> BinaryGrammar:
    """Rules longer than two cut into pairs, one helper nonterminal for each suffix that is shared among them."""
    there = reachable(start, weights)
    numbers: dict[object, int] = {start: 0}
    ids = {terminal: i for i, terminal in enumerate(terminals)}
    binary: dict[tuple[int, int, int], float] = {}
    lexical: dict[tuple[int, int], float] = {}

    def number(right: tuple[str, ...]) -> int:
        """The nonterminal of a suffix; the rules of a new one are made on the way."""
        key = right[0] if len(right) == 1 and right[0] not in ids else right
        if key not in numbers:
            numbers[key] = len(numbers)
            if isinstance(key, tuple):
                add(numbers[key], right, 1.0)
        return numbers[key]

    def add(left: int, right: tuple[str, ...], weight: float) -> None:
        if len(right) == 1:
            lexical[left, ids[right[0]]] = lexical.get((left, ids[right[0]]), 0.0) + weight
        else:
            key = (left, number(right[:1]), number(right[1:]))
            binary[key] = binary.get(key, 0.0) + weight

    for (left, right), weight in weights.items():
        if left in there:
            add(number((left,)), right, weight)
    return BinaryGrammar(
        terminals=terminals,
        start=0,
        size=len(numbers),
        binary=np.array(list(binary), dtype=np.int64).reshape(-1, 3),
        binary_weight=np.array(list(binary.values())),
        lexical=np.array(list(lexical), dtype=np.int64).reshape(-1, 2),
        lexical_weight=np.array(list(lexical.values())),
    )


def reachable(start: str, rules: Iterable[tuple[str, tuple[str, ...]]]) -> set[str]:
    """The symbols of all sentential forms; rules: left- and right-hand sides."""
    return grown({start}, lambda found: {symbol for left, right in rules if left in found for symbol in right})
