"""Weighted finite automata as text, one item a line, lines that begin with `#` apart.

    start STATE [WEIGHT]
    final STATE [WEIGHT]
    STATE STATE SYMBOL [WEIGHT]

A transition leads from the first state to the second; `<eps>` as its symbol reads nothing.  States are any words but
`start` and `final`, several may start.  Weights are numbers above 0, as 0.25 or 1/4, and 1 where they are left out; a
path's are multiplied, that of its start and of its end included, and a string weighs what its paths weigh together.
"""

from __future__ import annotations

from collections.abc import Iterable

from seqstruct.data.cfl.grammar import Grammar, Rule
from seqstruct.data.cfl.rules import WrittenGrammar, checked_terminal, nonterminal, weight_of

EMPTY = "<eps>"
_ROOT = "the root"


def read_wfsa(lines: Iterable[str]) -> WrittenGrammar:
    """The right-linear grammar of an automaton: a nonterminal for each state, with the same weights.

    Raises ValueError, with the line, on what is no item, is no state or stands twice, and where none starts or ends.
    """
    rules, places, seen = [], [], {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        marked = words[0] in ("start", "final")
        if not 0 <= len(words) - (2 if marked else 3) <= 1:
            raise ValueError(f"line {number}: expected start STATE [WEIGHT], final STATE [WEIGHT] or STATE STATE "
                             f"SYMBOL [WEIGHT], got {line.strip()!r}")
        item, weight = (words[:2], words[2:]) if marked else (words[:3], words[3:])
        if not {"start", "final"}.isdisjoint(item[marked:2]):
            raise ValueError(f"line {number}: a state is any word but start and final, got {line.strip()!r}")
        if first := seen.get(tuple(item)):
            raise ValueError(f"line {number}: {' '.join(item)} stands in line {first} already")
        seen[tuple(item)] = number
        rules.append(Rule(*_rule(item, number), weight_of(weight[0], number) if weight else 1.0))
        places.append(f"line {number}: {' '.join(item)}")
    for word in ("start", "final"):
        if not any(item[0] == word for item in seen):
            raise ValueError(f"expected a line `{word} STATE [WEIGHT]`, got none")
    terminals = dict.fromkeys(item[2] for item in seen if len(item) == 3 and item[2] != EMPTY)
    return WrittenGrammar(Grammar(tuple(terminals), nonterminal(_ROOT), tuple(rules)), tuple(places))


def _rule(item: list[str], line: int) -> tuple[str, tuple[str, ...]]:
    """Left- and right-hand side."""
    if item[0] == "start":
        return nonterminal(_ROOT), (nonterminal(item[1]),)
    if item[0] == "final":
        return nonterminal(item[1]), ()
    source, target, symbol = item
    read = () if symbol == EMPTY else (checked_terminal(symbol, line),)
    return nonterminal(source), (*read, nonterminal(target))
