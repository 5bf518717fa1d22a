"""Regular expressions: a symbol is a character, and the rest is a part of Python's `re`.

    a b        one after the other; spaces between are for the eye
    a|b        one or the other
    (ab)       a group, which may be empty
    a* a+ a? a{2} a{2,} a{,5} a{2,5}     repetitions
    \\+        a character that has a meaning of its own, as itself

All strings of a length that match are equally likely, in however many ways they do: the expression becomes a
deterministic automaton, by the positions that may come next (Glushkov 1961) and their subsets.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from seqstruct.data.cfl.grammar import Grammar, Rule
from seqstruct.data.cfl.rules import WrittenGrammar, checked_terminal, nonterminal

MOST_POSITIONS, MOST_STATES = 2000, 1000
_SPECIAL = frozenset("|()*+?{}[].^$\\")
_REPEAT = re.compile(r"[*+?]|\{(\d+)\}|\{(\d*),(\d*)\}")


class _Part(NamedTuple):
    """Of a part of the expression: whether it may be empty, and its positions that may come first and last."""

    empty: bool
    first: frozenset[int]
    last: frozenset[int]


_NOTHING = _Part(True, frozenset(), frozenset())


class _Positions:
    """Reads an expression: the symbol of each position, and the positions that may follow it."""

    def __init__(self, pattern: str):
        self.pattern, self.at = pattern, 0
        self.symbols: list[str] = []
        self.follow: list[set[int]] = []
        self.whole = self.alternatives(0)
        if self.at < len(pattern):
            raise self.error("a ( to go with this )")

    def error(self, expected: str) -> ValueError:
        got = repr(self.pattern[self.at :]) if self.at < len(self.pattern) else "the end"
        return ValueError(f"character {self.at + 1}: expected {expected}, got {got}")

    def peek(self) -> str:
        while self.pattern[self.at : self.at + 1].isspace():
            self.at += 1
        return self.pattern[self.at : self.at + 1]

    def alternatives(self, depth: int) -> _Part:
        if depth > 100:
            raise self.error("at most 100 groups inside each other")
        part = self.sequence(depth)
        while self.peek() == "|":
            self.at += 1
            other = self.sequence(depth)
            part = _Part(part.empty or other.empty, part.first | other.first, part.last | other.last)
        return part

    def sequence(self, depth: int) -> _Part:
        part = _NOTHING
        while self.peek() not in ("", "|", ")"):
            part = self.joined(part, self.repeated(depth))
        return part

    def repeated(self, depth: int) -> _Part:
        start = self.at
        part = self.atom(depth)
        self.peek()
        match = _REPEAT.match(self.pattern, self.at)
        if match is None:
            return part
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(match[0]) or _bounds(match)
        if most is not None and most < least:
            raise self.error("{m,n} with m at most n")
        if max(least, most or 0) > MOST_POSITIONS:
            raise self.error(f"at most {MOST_POSITIONS:,} repetitions")
        end = self.at = match.end()
        if self.peek() and self.peek() in "*+?{":
            raise self.error("no repetition right after another: put the first in parentheses")

        if not part.first:  # nothing but the empty string
            return part

        def copy() -> _Part:
            self.at = start
            again = self.atom(depth)
            self.at = end
            return again

        result, unused = _NOTHING, part
        copies = max(least, 1) if most is None else most
        for i in range(copies):
            part = unused if i == 0 else copy()
            if i + 1 == copies and most is None:
                self.connect(part, part)
            result = self.joined(result, part if i < least else part._replace(empty=True))
        return result

    def atom(self, depth: int) -> _Part:
        character = self.peek()
        if character == "(":
            self.at += 1
            part = self.alternatives(depth + 1)
            if self.peek() != ")":
                raise self.error("a )")
            self.at += 1
            return part
        if character == "\\":
            self.at += 1
            character = self.pattern[self.at : self.at + 1]
            if not character or character.isalnum() or character.isspace():
                raise self.error("a character that has a meaning of its own after \\")
        elif character in _SPECIAL:
            raise self.error(f"a symbol or a group, or \\{character} for the symbol itself")
        self.at += 1
        if len(self.symbols) == MOST_POSITIONS:
            raise ValueError(f"more than {MOST_POSITIONS:,} symbols once repetitions are written out")
        self.symbols.append(checked_terminal(character, 1))
        self.follow.append(set())
        here = frozenset([len(self.symbols) - 1])
        return _Part(False, here, here)

    def connect(self, before: _Part, after: _Part) -> None:
        for position in before.last:
            self.follow[position] |= after.first

    def joined(self, one: _Part, two: _Part) -> _Part:
        self.connect(one, two)
        return _Part(
            one.empty and two.empty,
            one.first | two.first if one.empty else one.first,
            one.last | two.last if two.empty else two.last,
        )


def _bounds(match: re.Match) -> tuple[int, int | None]:
    """Of {m}, {m,}, {,n} or {m,n}."""
    if match[1]:
        return int(match[1]), int(match[1])
    return int(match[2] or 0), int(match[3]) if match[3] else None


def read_regex(pattern: str) -> WrittenGrammar:
    """The right-linear grammar of an expression: one derivation for each string that matches, of weight 1.

    Raises ValueError, with the place, on what is no such expression, and on one whose automaton is too large.
    """
    positions = _Positions(pattern)
    whole, symbols = positions.whole, positions.symbols
    start = frozenset([-1])
    states, rules, pending = {start: "0"}, [], [start]
    while pending:
        state = pending.pop()
        left = nonterminal(states[state])
        following = set().union(*(whole.first if p < 0 else positions.follow[p] for p in state))
        for symbol in dict.fromkeys(symbols[p] for p in sorted(following)):
            target = frozenset(p for p in following if symbols[p] == symbol)
            if target not in states:
                if len(states) == MOST_STATES:
                    raise ValueError(f"its deterministic automaton has more than {MOST_STATES:,} states")
                states[target] = str(len(states))
                pending.append(target)
            rules.append(Rule(left, (symbol, nonterminal(states[target])), 1.0))
        if any(whole.empty if p < 0 else p in whole.last for p in state):
            rules.append(Rule(left, (), 1.0))
    grammar = Grammar(tuple(dict.fromkeys(symbols)), nonterminal("0"), tuple(rules))
    return WrittenGrammar(grammar, (pattern,) * len(rules))
