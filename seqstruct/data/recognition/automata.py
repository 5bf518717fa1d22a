"""Deterministic finite automata: strings of an exact length, and the symbols that may come next (Butoi et al. 2025).

In every state all arcs, and stopping where the state accepts, are equally likely; a string of length n is drawn from
this distribution given that it has n symbols.  What the paper does for all lengths at once with a semiring of counts
(algorithms 1 to 7) is here a backward recursion over the symbols that are left, each row divided by its largest entry.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

END = "$"  # what comes next where a string may end; no language has it as a symbol


@dataclass(frozen=True, eq=False)
class Automaton:
    """arcs: of each state the next one by symbol; a missing arc rejects.  The start is state 0.

    Every state is reached from the start and reaches an accepting one.
    """

    arcs: tuple[Mapping[str, int], ...]
    accepting: frozenset[int]

    def has_length(self, length: int) -> bool:
        """Whether a string of this length is accepted."""
        return length >= 0 and self._left(length)[0] > 0

    def draw(self, length: int, generator: Random) -> str:
        """A string of this length, from the distribution of the module's docstring.  O(length x arcs of a state).

        Raises ValueError if there is none.
        """
        if not self.has_length(length):
            raise ValueError(f"the automaton accepts no string of length {length}")
        state, symbols = 0, []
        for left in range(length - 1, -1, -1):
            weights = self._left(left)
            symbol = generator.choices(list(self.arcs[state]), [weights[to] for to in self.arcs[state].values()])[0]
            symbols.append(symbol)
            state = self.arcs[state][symbol]
        return "".join(symbols)

    def follow(self, string: str) -> list[str]:
        """The symbols that may come after each prefix of an accepted string, the empty one first, END among them."""
        state, found = 0, []
        for symbol in [*string, None]:
            found.append("".join(self.arcs[state]) + (END if state in self.accepting else ""))
            state = self.arcs[state].get(symbol, 0)
        return found

    @cached_property
    def _rows(self) -> list[list[float]]:
        return [[(q in self.accepting) / self._choices(q) for q in range(len(self.arcs))]]

    def _choices(self, state: int) -> int:
        return len(self.arcs[state]) + (state in self.accepting)

    def _left(self, length: int) -> list[float]:
        """Of each state the weight of all ways to read so many symbols and stop, up to a factor of the row."""
        rows = self._rows
        while len(rows) <= length:
            row = [sum(rows[-1][to] for to in arcs.values()) / self._choices(q) for q, arcs in enumerate(self.arcs)]
            largest = max(row) or 1.0
            rows.append([weight / largest for weight in row])
        return rows[length]


def explore(
    start: Hashable, alphabet: str, step: Callable[[Any, str], Hashable | None], accepting: Callable[[Any], bool]
) -> Automaton:
    """The automaton of the states that are reached from `start`; step: the next state, None where there is no arc."""
    numbers, arcs = {start: 0}, []
    states: list[Hashable] = [start]
    for state in states:  # grows on the way
        arcs.append({})
        for symbol in alphabet:
            reached = step(state, symbol)
            if reached is not None:
                if reached not in numbers:
                    numbers[reached] = len(states)
                    states.append(reached)
                arcs[-1][symbol] = numbers[reached]
    return Automaton(tuple(arcs), frozenset(numbers[state] for state in states if accepting(state)))


def table(accepting: Iterable[int], *arcs: str) -> Automaton:
    """An automaton of few states; arcs: of each state "symbol state" pairs with spaces between, as "0 1 1 0"."""
    rows = [words.split() for words in arcs]
    return Automaton(tuple({row[i]: int(row[i + 1]) for i in range(0, len(row), 2)} for row in rows),
                     frozenset(accepting))


def _cycle_step(state: int | str, symbol: str) -> int | str | None:
    if state == "done":
        return None
    if symbol in "<>=":
        return (state + {"<": -1, ">": 1, "=": 0}[symbol]) % 5
    return "done" if int(symbol) == state else None


def _arithmetic_step(state: str, symbol: str) -> str | None:
    """States: "" at first, a value "3", a value and an operator "3+", "=3" before the result, "done"."""
    digit = symbol.isdecimal()
    if state == "":
        return symbol if digit else None
    if state.isdecimal():
        return None if digit else "=" + state if symbol == "=" else state + symbol
    if state[0] == "=":
        return "done" if symbol == state[1] else None
    if state == "done" or not digit:
        return None
    value, operand = int(state[0]), int(symbol)
    return str({"+": value + operand, "-": value - operand, "*": value * operand}[state[1]] % 5)


def _dyck_step(state: str, symbol: str) -> str | None:
    """States: the closing brackets that are due, the next one last; three at most."""
    if symbol in "([":
        return state + {"(": ")", "[": "]"}[symbol] if len(state) < 3 else None
    return state[:-1] if state.endswith(symbol) else None


AUTOMATA = {
    "even-pairs": table([0, 1, 3], "0 1 1 3", "0 1 1 2", "0 1 1 2", "1 3 0 4", "1 3 0 4"),
    "repeat-01": table([0], "0 1", "1 0"),
    "parity": table([1], "0 0 1 1", "0 1 1 0"),
    "cycle-navigation": explore(0, "<>=01234", _cycle_step, lambda state: state == "done"),
    "modular-arithmetic": explore("", "01234+-*=", _arithmetic_step, lambda state: state == "done"),
    "dyck-2-3": explore("", "()[]", _dyck_step, lambda state: state == ""),
    "first": table([1], "1 1", "0 1 1 1"),
}
