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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from statistics import median

import numpy as np

from seqstruct.data.arguments import at_least

OPERATIONS: dict[str, Callable[[Sequence[int]], int]] = {  # from one or more digits to the digit that they come to
    "[MIN": min, "[MAX": max, "[MED": lambda values: int(median(values)), "[SM": lambda values: sum(values) % 10,
}
OPERATORS = tuple(OPERATIONS)
END = "]"
DIGITS = tuple(str(digit) for digit in range(10))
SYMBOLS = (*DIGITS, *OPERATORS, END)
OPERATION_PROBABILITY = 0.25
MOST_REJECTED = 1_000_000
MOST_FORMULAS = 10_000_000  # each leaves a digest in memory
MOST_SYMBOLS = 10_000_000_000  # drawn, the rejected ones too: some hours
LIMITS = {"lengths": 100_000, "max_depth": 100, "max_args": 1000}


@dataclass(frozen=True)
class FormulaOptions:
    """Which formulas are drawn.

    lengths: least and greatest number of tokens, both included.  The arena's own bounds, 500 and 2,000, are excluded
    there: 501 and 1,999 here.  max_depth: of nesting, 1 or more.  max_args: of an operation, 2 or more.  `LIMITS` are
    the greatest of each.
    """

    lengths: tuple[int, int] = (501, 1999)
    max_depth: int = 10
    max_args: int = 10

    def __post_init__(self) -> None:
        least, most = self.lengths
        if not 1 <= least <= most:
            raise ValueError(f"lengths: expected 1 or more, and the greater one last, got {least}:{most}")
        at_least(self, max_depth=1, max_args=2)
        for name, value in (("lengths", most), ("max_depth", self.max_depth), ("max_args", self.max_args)):
            if value > LIMITS[name]:
                raise ValueError(f"{name}: expected {LIMITS[name]} or less, got {value}")


def draw(options: FormulaOptions, generator: random.Random) -> tuple[list[str], int] | None:
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
        return OPERATIONS[operator](values or [0])

    value = grow(1)
    return (tokens, value) if len(tokens) <= most else None


def length_shares(options: FormulaOptions) -> np.ndarray:
    """The share of draws that have n tokens, for n = 0 .. the greatest length; together they fall short of 1 by the
    share of those that are longer.  Exact up to 1e-9.

    The shares are the coefficients of the power series F with F = z at the greatest depth and, one less deep,
    F = 3/4 z + 1/4 z^2 mean(F^2 .. F^max_args); they are read off its values on a circle in the unit disc, small enough
    for the coefficients beyond to vanish.
    """
    most = options.lengths[1]
    size = 2 * (most + 1)
    radius = 1e-12 ** (1 / size)
    z = radius * np.exp(-2j * np.pi * np.arange(size) / size)
    f = z
    for _ in range(options.max_depth - 1):
        mean = (f**2 - f ** (options.max_args + 1)) / (1 - f) / (options.max_args - 1)
        f = (1 - OPERATION_PROBABILITY) * z + OPERATION_PROBABILITY * z**2 * mean
    return np.fft.ifft(f).real[: most + 1] / radius ** np.arange(most + 1)


def check_cost(options: FormulaOptions, count: int) -> None:
    """Raises ValueError if `count` formulas are too many to hold or, by expectation, to draw."""
    if count > MOST_FORMULAS:
        raise ValueError(f"expected {MOST_FORMULAS:,} formulas or fewer in all, got {count:,}")
    least, most = options.lengths
    shares = length_shares(options)
    wanted = float(shares[least:].sum())
    each = float(shares @ np.arange(most + 1)) + most * max(0.0, 1 - float(shares.sum()))
    if wanted < 1e-9 or count * each / wanted > MOST_SYMBOLS:
        rare = f"one draw in {1 / wanted:,.0f}" if wanted > 1e-9 else "not one draw in a billion"
        raise ValueError(
            f"{rare} gives a formula of {least} to {most} tokens with depth {options.max_depth} and "
            f"{options.max_args} arguments: too rare to draw {count:,} of them; widen the lengths or ask for fewer"
        )


def draw_distinct(
    options: FormulaOptions, count: int, generator: random.Random, seen: set[bytes]
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
