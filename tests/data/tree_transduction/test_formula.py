"""Formulas: the paper's example, parsing back what was written, depths, and what is no formula."""

from __future__ import annotations

import numpy as np
import pytest

from seqstruct.data.tree_transduction.formula import (
    INFIX_SYMBOLS,
    NUMBERS,
    PREFIX_SYMBOLS,
    Branching,
    Formula,
    depth,
    infix,
    mean_symbols,
    parse_prefix,
    prefix,
    sample,
)

EXAMPLE = "$ ( * ( + ( + 15 7 ) 1 8 ) ( + 19 0 11 ) )"


def test_the_example_of_the_source() -> None:
    formula = parse_prefix(EXAMPLE.split())
    assert " ".join(infix(formula)) == "( ( 15 + 7 ) + 1 + 8 ) * ( 19 + 0 + 11 )"
    assert depth(formula) == 3
    assert " ".join(prefix(formula)) == EXAMPLE


@pytest.mark.parametrize("wanted", range(1, 7))
def test_samples(wanted: int) -> None:
    generator = np.random.default_rng(wanted)
    counts = set()
    for _ in range(200):
        formula = sample(wanted, Branching(), generator)
        assert depth(formula) == wanted
        assert parse_prefix(prefix(formula)) == formula
        assert set(prefix(formula)) <= set(PREFIX_SYMBOLS) and set(infix(formula)) <= set(INFIX_SYMBOLS)
        counts.add(len(formula.expressions))
    assert counts == {2, 3, 4}


@pytest.mark.parametrize("wanted, branching", [(1, Branching(5, 0.9)), (4, Branching()), (5, Branching(3, 0.6))])
def test_the_mean_number_of_symbols(wanted: int, branching: Branching) -> None:
    generator = np.random.default_rng(1)
    lengths = [len(prefix(sample(wanted, branching, generator))) for _ in range(4000)]
    assert abs(np.mean(lengths) - mean_symbols(wanted, branching)) < 4 * np.std(lengths) / 4000**0.5


def test_infix_values_are_those_of_the_formula() -> None:
    """Parentheses are where they must be: the text has the same value, by Python's own grammar."""

    def value(expression: Formula | str) -> int:
        if isinstance(expression, str):
            return int(expression)
        parts = [value(e) for e in expression.expressions]
        return sum(parts) if expression.operator == "+" else int(np.prod(parts, dtype=object))

    def read(symbols: list[str]) -> int:
        """The value of an infix form whose operators are one and the same inside each pair of parentheses."""
        stack: list[list] = [[]]
        for symbol in [*symbols, ")"]:
            if symbol == "(":
                stack.append([])
            elif symbol == ")":
                parts = stack.pop()
                numbers, operators = parts[::2], set(parts[1::2])
                assert len(operators) == 1
                result = sum(numbers) if operators == {"+"} else int(np.prod(numbers, dtype=object))
                if not stack:
                    return result
                stack[-1].append(result)
            else:
                stack[-1].append(int(symbol) if symbol in NUMBERS else symbol)
        raise AssertionError(symbols)

    generator = np.random.default_rng(5)
    for _ in range(50):
        formula = sample(4, Branching(3, 0.5), generator)
        assert read(infix(formula)) == value(formula)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "root symbol"),
        ("( + 1 2 )", "root symbol"),
        ("$", "nothing"),
        ("$ ( + 1 2", "unbalanced: 1 of"),
        ("$ ( + 1 ( * 2 3 )", "unbalanced: 1 of"),
        ("$ ( + 1 2 ) )", "symbol 7, \\): the formula has ended"),
        ("$ )", "symbol 2: \\) is out of place"),
        ("$ 7", "out of place"),
        ("$ ( 1 2 )", "symbol 3: expected an operator"),
        ("$ ( ( + 1 2 ) 3 )", "symbol 3: expected an operator"),
        ("$ ( + 1 * 2 )", "symbol 5: \\* is out of place"),
        ("$ ( + 1 21 )", "symbol 5: 21 is out of place"),
        ("$ ( + 1 )", "symbol 5: \\+ has 1 expressions"),
        ("$ ( + )", "0 expressions"),
        ("$ ( + 1 2 ) 3", "ended before"),
        ("$ ( + 1 $ )", "out of place"),
    ],
)
def test_what_is_no_formula(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_prefix(text.split())
