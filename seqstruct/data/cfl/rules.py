"""Weighted grammars as text.

    # clauses, one inside another
    S  -> NP VP [0.9] | NP VP "that" S [0.1]
    NP -> "the" N
    N  -> "dog" | "cat" | 'mouse' [1/2]
    VP -> V | V NP

A terminal stands in quotes, double or single, and has no space in it; any other word is a nonterminal, which some line
must have on its left.  The left-hand side of the first rule is the start symbol.  Nothing between `->`, `|` and the end
is the empty right-hand side.  A line that begins with `|` goes on with the one before; `#` begins a comment.  Weights
are numbers above 0, as 0.25 or 1/4; alternatives without one share equally what the others of their left-hand side,
wherever they stand, leave of 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from seqstruct.data.cfl.grammar import Grammar, Rule
from seqstruct.data.text.binarise import RESERVED

_TOKEN = re.compile(
    r"""\s+ | \#.* | (?P<arrow>->) | (?P<bar>\|) | \[(?P<weight>[^\]]*)\] | "(?P<double>[^"]*)" | '(?P<single>[^']*)'
      | (?P<name>[^\W\d] (?: [\w'.] | -(?!>) )*)""",
    re.VERBOSE,
)


class WrittenGrammar(NamedTuple):
    """A grammar and where each of its rules was written, for errors: "line 3: S -> NP VP"."""

    grammar: Grammar
    places: tuple[str, ...]


class _Alternative(NamedTuple):
    line: int
    left: str
    right: tuple[tuple[str, bool], ...]  # each with whether it is a terminal
    weight: float | None

    def __str__(self) -> str:
        words = (f'"{symbol}"' if terminal else symbol for symbol, terminal in self.right)
        return f"line {self.line}: {' '.join([self.left, '->', *words])}"


def nonterminal(name: str) -> str:
    """The name inside of a grammar; terminals have no space, so the two never meet."""
    return f"nonterminal {name}"


def weight_of(text: str, line: int) -> float:
    """A weight, as a number or a fraction.  Raises ValueError, with the line, unless it is finite and above 0."""
    try:
        above, slash, below = text.partition("/")
        weight = float(above) / float(below if slash else 1)
    except (ValueError, ZeroDivisionError):
        weight = math.nan
    if not 0 < weight < math.inf:
        raise ValueError(f"line {line}: expected a weight above 0, such as 0.25 or 1/4, got {text!r}")
    return weight


def checked_terminal(symbol: str, line: int) -> str:
    """A symbol that lines of symbols and fairseq's dictionary can hold.  Raises ValueError with the line otherwise."""
    if symbol.split() != [symbol] or symbol in RESERVED:
        raise ValueError(f"line {line}: a terminal is a word without spaces, and not {', '.join(RESERVED)}; "
                         f"got {symbol!r}")
    return symbol


def read_rules(lines: Iterable[str]) -> WrittenGrammar:
    """The grammar of a text.

    Raises ValueError, with line and rule, on what is no rule, a nonterminal without one, a rule that stands twice, and
    alternatives without a weight for which nothing is left.
    """
    alternatives: list[_Alternative] = []
    for number, line in enumerate(lines, 1):
        alternatives += _alternatives(line, number, alternatives[-1].left if alternatives else None)
    if not alternatives:
        raise ValueError('expected rules such as S -> "a" S "b" [0.9] | [0.1], got none')
    known, seen = {a.left for a in alternatives}, {}
    for a in alternatives:
        for symbol, terminal in a.right:
            if not terminal and symbol not in known:
                raise ValueError(f"{a}: {symbol} has no rule; a terminal stands in quotes")
        if first := seen.get((a.left, a.right)):
            raise ValueError(f"{a}: stands in line {first} already")
        seen[a.left, a.right] = a.line
    shares = _shares(alternatives)
    rules = tuple(
        Rule(nonterminal(a.left), tuple(s if terminal else nonterminal(s) for s, terminal in a.right),
             shares[a.left] if a.weight is None else a.weight)
        for a in alternatives
    )
    terminals = tuple(dict.fromkeys(symbol for a in alternatives for symbol, terminal in a.right if terminal))
    return WrittenGrammar(Grammar(terminals, rules[0].left, rules), tuple(map(str, alternatives)))


def _shares(alternatives: list[_Alternative]) -> dict[str, float]:
    """By left-hand side the weight of an alternative that states none."""
    shares = {}
    for left in dict.fromkeys(a.left for a in alternatives):
        open_ones = [a for a in alternatives if a.left == left and a.weight is None]
        rest = 1 - math.fsum(a.weight for a in alternatives if a.left == left and a.weight is not None)
        if open_ones and rest <= 1e-12:
            raise ValueError(f"{open_ones[0]}: has no weight, and the others of {left} leave nothing of 1")
        shares[left] = rest / max(1, len(open_ones))
    return shares


def _alternatives(line: str, number: int, before: str | None) -> list[_Alternative]:
    """Those of a line, which may go on with the left-hand side before; none of an empty line."""
    tokens = _tokens(line, number)
    if not tokens:
        return []
    if tokens[0][0] == "bar" and before is not None:
        left, rest = before, tokens[1:]
    elif [kind for kind, _ in tokens[:2]] == ["name", "arrow"]:
        left, rest = tokens[0][1], tokens[2:]
    else:
        raise ValueError(f"line {number}: expected NAME -> SYMBOL ... [WEIGHT] | ..., got {line.strip()!r}")
    found: list[_Alternative] = []
    right: list[tuple[str, bool]] = []
    weight: float | None = None
    for kind, text in [*rest, ("bar", "|")]:
        if kind == "bar":
            found.append(_Alternative(number, left, tuple(right), weight))
            right, weight = [], None
        elif kind == "arrow":
            raise ValueError(f"line {number}: expected one -> in a line, got {line.strip()!r}")
        elif weight is not None:
            raise ValueError(f"line {number}: after a weight comes | or the end, got {text!r}")
        elif kind == "weight":
            weight = weight_of(text.strip(), number)
        elif kind == "name":
            right.append((text, False))
        else:
            right.append((checked_terminal(text, number), True))
    return found


def _tokens(line: str, number: int) -> list[tuple[str, str]]:
    """Kind and text of each word of a line."""
    tokens, at = [], 0
    while at < len(line):
        match = _TOKEN.match(line, at)
        if match is None:
            raise ValueError(f"line {number}, column {at + 1}: expected a name, a terminal in quotes, ->, | or a "
                             f"weight in brackets, got {line[at:].strip()!r}")
        if match.lastgroup:
            tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens
