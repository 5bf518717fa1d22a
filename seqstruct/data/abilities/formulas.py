"""Long ListOps: the value of each operation of a formula, asked for at its closing bracket.

Formulas are drawn as `seqstruct.data.listops` draws them (Nangia and Bowman 2018); a level is the height of an
operation, 1 over digits alone.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from seqstruct.data.abilities.ability import Ability, Tagged, check_lengths
from seqstruct.data.listops.formulas import END, LIMITS, OPERATIONS, SYMBOLS, FormulaOptions, draw


@dataclass(frozen=True)
class ListOps(Ability):
    """depth: of nesting, a formula of one digit having depth 1.  max_args: of an operation."""

    depth: int = 6
    max_args: int = 5
    axis: ClassVar[str] = "height"
    clue_name: ClassVar[str] = "operator"
    limits = {"depth": (2, LIMITS["max_depth"]), "max_args": (2, LIMITS["max_args"])}

    def symbols(self) -> list[str]:
        """Digits, operators and the closing bracket."""
        return list(SYMBOLS)

    def draw(self, lengths: tuple[int, int], generator: random.Random) -> Tagged | None:
        """None where the formula has another length."""
        check_lengths(lengths, 4, "an operator, two digits and a bracket")
        drawn = draw(FormulaOptions(lengths, self.depth, self.max_args), generator)
        if drawn is None or len(drawn[0]) < lengths[0]:
            return None
        found = evaluate_all(drawn[0])
        return Tagged(drawn[0], [None if one is None else str(one[0]) for one in found],
                       [0 if one is None else one[1] for one in found])

    def clues(self, symbols: Sequence[str]) -> list[Hashable]:
        """The operator of the operation that a bracket closes."""
        found: list[Hashable] = []
        stack: list[str] = []
        for symbol in symbols:
            if symbol in OPERATIONS:
                stack.append(symbol)
            found.append(stack.pop() if symbol == END else None)
        return found


def evaluate_all(tokens: Sequence[str]) -> list[tuple[int, int] | None]:
    """At each closing bracket of a formula the value and the height of its operation, None at all other tokens."""
    found: list[tuple[int, int] | None] = []
    stack: list[tuple[str, list[int], int]] = [("", [], 0)]
    for token in tokens:
        closed = None
        if token in OPERATIONS:
            stack.append((token, [], 0))
        elif token == END:
            operator, values, height = stack.pop()
            closed = OPERATIONS[operator](values), height + 1
            above, others, highest = stack.pop()
            stack.append((above, [*others, closed[0]], max(highest, closed[1])))
        else:
            stack[-1][1].append(int(token))
        found.append(closed)
    return found
