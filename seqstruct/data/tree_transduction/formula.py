"""Formulas of + and * over the numbers 0 to 20, in prefix and infix notation (Kim et al. 2017, sec. 4.1).

    $ ( * ( + ( + 15 7 ) 1 8 ) ( + 19 0 11 ) )    is in infix notation    ( ( 15 + 7 ) + 1 + 8 ) * ( 19 + 0 + 11 )

The root symbol $ stands in front of the prefix form; the infix form has no parentheses around the whole.  The depth of
a formula is its greatest number of parentheses around a number; this one has depth 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

ROOT = "$"
OPERATORS = ("+", "*")
NUMBERS = tuple(str(n) for n in range(21))
PREFIX_SYMBOLS = (ROOT, "(", ")", *OPERATORS, *NUMBERS)
INFIX_SYMBOLS = PREFIX_SYMBOLS[1:]


class Formula(NamedTuple):
    """An operator and two or more expressions, each a formula or a number as text."""

    operator: str
    expressions: tuple[Formula | str, ...]


class Branching(NamedTuple):
    """How formulas branch; the source leaves it open.

    expressions: the most in one pair of parentheses, 2 or more; their number is uniform from 2.
    nesting: probability, in [0, 1], that an expression is a formula where a number would do.
    """

    expressions: int = 4
    nesting: float = 0.2


def sample(depth: int, branching: Branching, generator: np.random.Generator) -> Formula:
    """A formula of exactly this depth, 1 or more.

    One of its expressions, each with the same chance, has the depth less 1; each other one is a formula with the
    probability `nesting`, of a depth uniform from 1 to that.  Operators and numbers are uniform.
    """
    count = int(generator.integers(2, branching.expressions + 1))
    deepest = int(generator.integers(count))
    expressions: list[Formula | str] = []
    for place in range(count):
        if depth > 1 and place == deepest:
            expressions.append(sample(depth - 1, branching, generator))
        elif depth > 1 and generator.random() < branching.nesting:
            expressions.append(sample(int(generator.integers(1, depth)), branching, generator))
        else:
            expressions.append(NUMBERS[generator.integers(len(NUMBERS))])
    return Formula(OPERATORS[generator.integers(len(OPERATORS))], tuple(expressions))


def mean_symbols(depth: int, branching: Branching) -> float:
    """The expected number of symbols in the prefix form of a `sample` of this depth, 1 or more."""
    others = (branching.expressions + 2) / 2 - 1
    means: list[float] = []
    for deep in range(depth):
        nested = branching.nesting * sum(means) / deep + 1 - branching.nesting if deep else 1.0
        means.append(3 + (means[-1] if deep else 1.0) + others * nested)
    return 1 + means[-1]


def depth(formula: Formula | str) -> int:
    """The depth of a formula, 0 of a number."""
    return 0 if isinstance(formula, str) else 1 + max(map(depth, formula.expressions))


def prefix(formula: Formula) -> list[str]:
    """The symbols of the prefix form, the root symbol in front."""

    def symbols(expression: Formula | str) -> list[str]:
        if isinstance(expression, str):
            return [expression]
        return ["(", expression.operator, *(s for e in expression.expressions for s in symbols(e)), ")"]

    return [ROOT, *symbols(formula)]


def infix(formula: Formula) -> list[str]:
    found: list[str] = []
    for place, expression in enumerate(formula.expressions):
        found += [formula.operator] if place else []
        found += [expression] if isinstance(expression, str) else ["(", *infix(expression), ")"]
    return found


def parse_prefix(symbols: Sequence[str]) -> Formula:
    """The formula of a prefix form.  Raises ValueError, saying where, if it is not one."""
    if list(symbols[:1]) != [ROOT]:
        raise ValueError(f"expected the root symbol {ROOT} first, got {' '.join(symbols[:1]) or 'nothing'}")
    opened: list[list[Formula | str]] = [[]]
    operators: list[str] = []
    for place, symbol in enumerate(symbols[1:], 2):
        if place > 2 and len(opened) == 1:
            raise ValueError(f"symbol {place}, {symbol}: the formula has ended before it")
        if len(opened) > len(operators) + 1:
            if symbol not in OPERATORS:
                raise ValueError(f"symbol {place}: expected an operator, + or *, got {symbol}")
            operators.append(symbol)
        elif symbol == "(":
            opened.append([])
        elif symbol == ")" and operators:
            expressions = opened.pop()
            if len(expressions) < 2:
                raise ValueError(f"symbol {place}: {operators[-1]} has {len(expressions)} expressions, not 2 or more")
            opened[-1].append(Formula(operators.pop(), tuple(expressions)))
        elif symbol in NUMBERS and operators:
            opened[-1].append(symbol)
        else:
            raise ValueError(f"symbol {place}: {symbol} is out of place")
    if len(opened) > 1:
        raise ValueError(f"unbalanced: {len(opened) - 1} of the parentheses are not closed")
    if not opened[0]:
        raise ValueError("expected a formula after the root symbol, got nothing")
    return opened[0][0]
