"""The directed tree of the greatest score by contraction of cycles (Chu and Liu 1965; Edmonds 1967), on Python lists.

A weight is a pair, compared first by its integer, then by its number; pairs are added and subtracted part by part,
which is all that the algorithm asks of weights.  With -1 in the arcs of the root and 0 in all others, a tree of one
root arc beats every tree of several, exactly, however large the numbers are.  Numbers are floats, or fractions where
some are so large that digits of others would be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from seqstruct.ops.chains.log_potentials import LARGEST_POTENTIAL

Weight = tuple[int, float | Fraction]
Arcs = dict[int, dict[int, Weight]]  # by dependent, then head


class _Contraction(NamedTuple):
    """A cycle that became one node.

    heads: of the nodes of the cycle; enters: by head outside, the node of the cycle that its best arc goes to;
    leaves: by dependent outside, the node of the cycle that its best arc comes from.
    """

    node: int
    heads: dict[int, int]
    enters: dict[int, int]
    leaves: dict[int, int]


def best_heads(scores: Sequence[Sequence[float]], single_root: bool) -> list[int] | None:
    """Heads of the words 1 .. n under scores[head][dependent], -inf where there is no arc; None if there is no tree.

    O(n^3) time at worst, O(n^2) where no cycle arises.
    """
    n = len(scores) - 1
    great = any(abs(x) > LARGEST_POTENTIAL for row in scores for x in row if x > -float("inf"))
    number = Fraction if great else float
    arcs: Arcs = {
        m: {
            h: (-int(single_root and h == 0), number(scores[h][m]))
            for h in range(n + 1)
            if h != m and scores[h][m] > -float("inf")
        }
        for m in range(1, n + 1)
    }
    contractions: list[_Contraction] = []
    while True:
        if not all(arcs.values()):
            return None
        heads = {m: max(row, key=row.__getitem__) for m, row in arcs.items()}
        cycle = _cycle(heads)
        if not cycle:
            break
        contractions.append(_contract(arcs, {m: heads[m] for m in cycle}, n + 1 + len(contractions)))
    for step in reversed(contractions):
        head = heads.pop(step.node)
        for m, u in step.leaves.items():
            if heads.get(m) == step.node:
                heads[m] = u
        heads |= step.heads
        heads[step.enters[head]] = head
    found = [heads[m] for m in range(1, n + 1)]
    return None if single_root and found.count(0) > 1 else found


def _cycle(heads: dict[int, int]) -> list[int]:
    """The nodes of some cycle; none if every node reaches the root."""
    done = {0}
    for start in heads:
        path, node = {}, start
        while node not in done and node not in path:
            path[node] = len(path)
            node = heads[node]
        if node in path:
            return list(path)[path[node] :]
        done |= path.keys()
    return []


def _contract(arcs: Arcs, heads: dict[int, int], node: int) -> _Contraction:
    """Make one node of a cycle, in place; an arc into it is worth its gain over the arc that it replaces."""
    into: dict[int, Weight] = {}
    enters: dict[int, int] = {}
    leaves: dict[int, int] = {}
    for m, inside in heads.items():
        row = arcs.pop(m)
        number, score = row[inside]
        for h, weight in row.items():
            gain = (weight[0] - number, weight[1] - score)
            if h not in heads and (h not in into or gain > into[h]):
                into[h], enters[h] = gain, m
    for m, row in arcs.items():
        choices = {u: row.pop(u) for u in heads if u in row}
        if choices:
            leaves[m] = max(choices, key=choices.__getitem__)
            row[node] = choices[leaves[m]]
    arcs[node] = into
    return _Contraction(node, heads, enters, leaves)
