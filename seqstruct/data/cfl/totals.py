"""Total weights of infinitely many derivations: of empty strings, of all strings, of cycles of unary rules.

The total weights z of all that each nonterminal derives are the least solution of z = F(z), with F(z)_A the sum over
rules A -> X Y ... of their weight times z_X z_Y ...  Newton's method from zero climbs to it (Etessami and Yannakakis,
"Recursive Markov chains, stochastic grammars, and monotone systems of nonlinear equations", J. ACM 2009), as long as
the spectral radius of F' is below 1, which is so just where (I - F')^-1 has no negative entry; if that ends, there is
no solution.  At radius 1 itself (S -> S S [1/2] | "a" [1/2]) half the digits are lost: there a solution with few
decimals, if one is that near, stands for the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

ROUNDS = 200
NEAR = 1e-6
Rules = Sequence[tuple[str, Sequence[str], float]]  # left, right, weight


class InfiniteWeights(ValueError):
    """Weights that sum to infinity; names: the nonterminals whose rules do so."""

    def __init__(self, names: Sequence[str]):
        super().__init__(f"the weights of what {', '.join(names)} derives sum to infinity")
        self.names = tuple(names)


def grown(found: set[str], step: Callable[[set[str]], set[str]]) -> set[str]:
    """The least set that has these members and whatever a step makes of it."""
    while more := step(found) - found:
        found |= more
    return found


def productive(rules: Rules, known: Iterable[str]) -> set[str]:
    """The symbols that derive strings of `known` symbols, these included; the empty string is one."""
    return grown(set(known), lambda found: {left for left, right, _ in rules if found.issuperset(right)})


@np.errstate(over="ignore", invalid="ignore")
def total_weights(rules: Rules, terminals: Collection[str], each: float) -> dict[str, float]:
    """Total weight of the strings of each nonterminal that derives any, every terminal counting `each`.

    each: 0 leaves the empty string alone, 1 gives the weights as written.  Where float64 ends, those of all are inf.
    Raises InfiniteWeights.  O(n^3) time a round for n nonterminals, few rounds.
    """
    known = productive(rules, terminals if each else ())
    live = [rule for rule in rules if known.issuperset(rule[1])]
    index = {name: i for i, name in enumerate(dict.fromkeys(left for left, _, _ in live))}
    names = list(index)
    compiled = [
        (index[left], weight * each ** sum(s not in index for s in right), [index[s] for s in right if s in index])
        for left, right, weight in live
    ]

    def value_of(z: np.ndarray) -> np.ndarray:
        value = np.zeros(len(names))
        for left, weight, right in compiled:
            value[left] += weight * z[right].prod()
        return value

    def slope_of(z: np.ndarray) -> np.ndarray:
        slope = np.zeros((len(names), len(names)))
        for left, weight, right in compiled:
            for i, symbol in enumerate(right):
                slope[left, symbol] += weight * z[right[:i] + right[i + 1 :]].prod()
        return slope

    z, change = np.zeros(len(names)), np.inf
    for _ in range(ROUNDS):
        value = value_of(z)
        if (abs(value - z) <= 4e-16 * z).all():
            break
        try:
            after = z + closure(slope_of(z), names) @ (value - z)
        except InfiniteWeights:
            if change > NEAR:
                raise
            break  # at radius 1, as near as it gets
        except np.linalg.LinAlgError:  # of numbers so large that it takes the matrix for singular
            after = np.full(len(names), np.inf)
        if not np.isfinite(after).all():
            return dict.fromkeys(names, math.inf)
        change, z = float((abs(after - z) / np.maximum(after, 1e-300)).max(initial=0)), after
    rounded = z.round(7)
    if (abs(value_of(rounded) - rounded) <= 1e-14 * rounded).all() and (abs(rounded - z) <= NEAR * z).all():
        z = rounded
    return dict(zip(names, z.tolist(), strict=True))


def closure(steps: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """The sum I + steps + steps^2 + ... of a matrix without negative entries, exact zeros where no path leads.

    Raises InfiniteWeights with the names of a cycle where it has no limit.
    """
    for cycle in _cycles(steps):
        if abs(np.linalg.eigvals(steps[np.ix_(cycle, cycle)])).max() > 1 - 1e-12:
            raise InfiniteWeights([names[i] for i in cycle])
    found = np.linalg.inv(np.eye(len(steps)) - steps)
    return np.where(_paths(steps), found, 0.0)


def _paths(steps: np.ndarray) -> np.ndarray:
    """Whether a path, of no step perhaps, leads from each to each."""
    reached = (steps > 0) | np.eye(len(steps), dtype=bool)
    while True:
        more = reached.astype(np.float32) @ reached.astype(np.float32) > 0
        if (more == reached).all():
            return reached
        reached = more


def _cycles(steps: np.ndarray) -> list[np.ndarray]:
    """Sets of indices that reach each other by one step or more."""
    from scipy.sparse.csgraph import connected_components

    _, labels = connected_components(steps > 0, connection="strong")
    groups = [np.flatnonzero(labels == label) for label in range(labels.max(initial=-1) + 1)]
    return [group for group in groups if len(group) > 1 or steps[group[0], group[0]] > 0]


def proper(rules: Rules, totals: Mapping[str, float]) -> list[tuple[str, Sequence[str], float]]:
    """The same distribution of strings with weights of each left-hand side that sum to 1 (Nederhof and Satta 2003).

    totals: of all nonterminals, every terminal counting 1.
    """
    return [
        (left, right, weight * float(np.prod([totals.get(s, 1.0) for s in right])) / totals[left])
        for left, right, weight in rules
    ]
