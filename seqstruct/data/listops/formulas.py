"""Formulas of ListOps: nested operations on digits in prefix notation, and the digit that each comes to.

    [MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]      5

Operators (Nangia and Bowman 2018): MIN, MAX, MED (the median; of an even number of arguments the mean of the middle
two, its fraction dropped) and SM (the sum modulo 10).  A formula's length is its number of tokens: each operator, digit
and closing bracket is one; the parentheses of the original files, which the Long Range Arena drops, are not written.

How formulas are drawn (Tay et al. 2021): at each place stands an operation with probability 1/4, a digit otherwise and
at the greatest depth, where a formula of one digit has depth 1; an operation has 2 to `max_args` arguments; operators,
digits and numbers of arguments are uniform.  Formulas of other lengths than those wanted are drawn again, and so is any
that was there before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
END = "]"
DIGITS = tuple(str(digit) for digit in range(10))
SYMBOLS = (*DIGITS, *OPERATORS, END)
OPERATION_PROBABILITY = 0.25
MOST_REJECTED = 1_000_000


@dataclass(frozen=True)
class Options:
    """Which formulas are drawn.

    lengths: least and greatest number of tokens, both included.  The arena's own bounds, 500 and 2,000, are excluded
    there: 501 and 1,999 here.  max_depth: of nesting, 1 or more.  max_args: of an operation, 2 or more.
    """

    lengths: tuple[int, int] = (501, 1999)
    max_depth: int = 10
    max_args: int = 10

    def __post_init__(self) -> None:
        least, most = self.lengths
        if not 1 <= least <= most:
            raise ValueError(f"lengths: expected 1 or more, and the greater one last, got {least}:{most}")
        if self.max_depth < 1:
            raise ValueError(f"max_depth: expected 1 or more, got {self.max_depth}")
        if self.max_args < 2:
            raise ValueError(f"max_args: expected 2 or more, got {self.max_args}")


def operate(operator: str, values: Sequence[int]) -> int:
    """The digit that an operator makes of one or more digits.  Raises ValueError if the operator is unknown."""
    if operator == "[MIN":
        return min(values)
    if operator == "[MAX":
        return max(values)
    if operator == "[SM":
        return sum(values) % 10
    if operator == "[MED":
        ordered, middle = sorted(values), len(values) // 2
        return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) // 2
    raise ValueError(f"expected an operator of {' '.join(OPERATORS)}, got {operator!r}")


def evaluate(tokens: Sequence[str]) -> int:
    """The value of a formula.  Raises ValueError naming the token, counted from 1, where it is none."""
    stack: list[tuple[str, list[int]]] = [("", [])]
    for number, token in enumerate(tokens, 1):
        if token in OPERATORS:
            stack.append((token, []))
        elif token in DIGITS:
            stack[-1][1].append(int(token))
        elif token == END and len(stack) > 1 and stack[-1][1]:
            operator, values = stack.pop()
            stack[-1][1].append(operate(operator, values))
        else:
            raise ValueError(f"token {number} of the formula: expected none such as {token!r} there")
    if len(stack) > 1 or len(stack[0][1]) != 1:
        values = len(stack[0][1])
        raise ValueError(f"expected one whole formula, got {len(stack) - 1} open brackets and {values} values")
    return stack[0][1][0]


def draw(options: Options, generator: random.Random) -> tuple[list[str], int] | None:
    """One formula, of whatever length, and its value; None if it grew beyond the greatest length."""
    tokens: list[str] = []
    most = options.lengths[1]

    def grow(depth: int) -> int:
        if depth >= options.max_depth or generator.random() > OPERATION_PROBABILITY:
            digit = generator.randrange(10)
            tokens.append(DIGITS[digit])
            return digit
        operator = generator.choice(OPERATORS)
        tokens.append(operator)
        values = []
        for _ in range(generator.randint(2, options.max_args)):
            if len(tokens) > most:
                break
            values.append(grow(depth + 1))
        tokens.append(END)
        return operate(operator, values or [0])

    value = grow(1)
    return (tokens, value) if len(tokens) <= most else None


def draw_distinct(
    options: Options, count: int, generator: random.Random, seen: set[bytes]
) -> Iterator[tuple[list[str], int]]:
    """`count` formulas of the lengths wanted with their values, none twice and none whose digest is in `seen`.

    seen: 16 bytes for each formula; those drawn are added.
    Raises ValueError if a million draws in a row bring no new one.
    """
    for _ in range(count):
        for _ in range(MOST_REJECTED):
            drawn = draw(options, generator)
            if drawn is None or len(drawn[0]) < options.lengths[0]:
                continue
            digest = blake2b(" ".join(drawn[0]).encode(), digest_size=16).digest()
            if digest not in seen:
                seen.add(digest)
                yield drawn
                break
        else:
            raise ValueError(
                f"{MOST_REJECTED} draws brought no new formula of {options.lengths[0]} to {options.lengths[1]} tokens: "
                f"with depth {options.max_depth} and {options.max_args} arguments there are too few of them"
            )
