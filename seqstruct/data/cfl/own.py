"""Languages of one's own: a grammar, a regular expression or an automaton made ready for `sampler` and `chart`.

A derivation weighs what its rules weigh together, a string what its derivations do, and p(w | l) is a string's share of
what all strings of its length l weigh.  Rules that no derivation has are left out; if the weights of all strings have a
sum, each rule is divided so that those of a left-hand side sum to 1, which changes no p(w | l); rules are cut to two
symbols; `to_binary` takes empty and unary rules out; and terminals all count one factor that keeps the weights of long
strings near 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from seqstruct.data.cfl.grammar import BinaryGrammar, Grammar, Rule, reachable, to_binary
from seqstruct.data.cfl.languages import MAX_LENGTH, Language
from seqstruct.data.cfl.regex import read_regex
from seqstruct.data.cfl.rules import WrittenGrammar, read_rules
from seqstruct.data.cfl.totals import InfiniteWeights, productive, proper, total_weights
from seqstruct.data.cfl.wfsa import read_wfsa

READERS: dict[str, Callable[[str], WrittenGrammar]] = {
    "rules": lambda text: read_rules(text.split("\n")),
    "regex": lambda text: read_regex(text.rstrip("\n")),
    "wfsa": lambda text: read_wfsa(text.split("\n")),
}
MOST_NONTERMINALS = 1500
SMALLEST = np.finfo(np.float64).tiny  # with all its digits


@dataclass(frozen=True, eq=False)
class OwnLanguage(Language):
    """A language of one's own.  form: one of `READERS`.  grammar: cleaned, and proper if it can be.

    text: what was written.  notes: what was left out or is worth knowing, a sentence each.
    total: weight of all strings together as written, None if it is infinite or beyond float64.
    possible: MAX_LENGTH + 1, bool: whether there is a string of each length.
    """

    text: str
    notes: tuple[str, ...]
    total: float | None
    possible: np.ndarray

    def log_inside(self, max_length: int) -> np.ndarray:
        """As of `Language`, up to a factor for each symbol.

        Raises ValueError where the strings of one length weigh so much more than those of another that float64 ends.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            found = super().log_inside(max_length)
        safe = (abs(found) < 500) | ~self.possible[: max_length + 1]
        if not safe.all():
            raise ValueError(f"{self.name}: strings of length {np.flatnonzero(~safe)[0]} weigh too much or too little "
                             "beside those of other lengths for float64")
        return found


@lru_cache(maxsize=32)
def own_language(name: str, form: str, text: str) -> OwnLanguage:
    """The language of a text.  form: of `READERS`: "rules" as `rules` has them, a "regex", or a "wfsa".

    Raises ValueError, with what was written there and in which line, on what cannot be read, on a language without
    strings, with the empty string alone or with none of `MAX_LENGTH` symbols at most, on weights of one string that sum
    to infinity, and on one too large.
    """
    try:
        return _made(name, form, text, READERS[form](text))
    except ValueError as error:
        raise ValueError(f"{repr(name) if form == 'regex' else name}: {error}") from None


def _made(name: str, form: str, text: str, written: WrittenGrammar) -> OwnLanguage:
    kept, notes = _cleaned(written)
    places = [written.places[i] for i in kept]
    rules = [written.grammar.rules[i] for i in kept]
    used = {symbol for rule in rules for symbol in rule.right}.intersection(written.grammar.terminals)
    terminals = tuple(t for t in written.grammar.terminals if t in used)
    start = written.grammar.start
    if not terminals:
        raise ValueError("the empty string is its only string")
    short = _short(rules)
    if (size := len({rule.left for rule in short})) > MOST_NONTERMINALS:
        raise ValueError(f"expected {MOST_NONTERMINALS:,} nonterminals or states at most, once rules are cut to two "
                         f"symbols, got {size:,}")
    grammar, total, whole = Grammar(terminals, start, tuple(short)), None, "have no sum"
    with suppress(InfiniteWeights):
        totals, whole = total_weights(short, terminals, 1.0), "have a sum beyond float64"
        if all(SMALLEST <= found < math.inf for found in totals.values()):
            total, grammar = totals[start], replace(grammar, rules=tuple(Rule(*rule) for rule in proper(short, totals)))
            whole = f"sum to {total:.6g}"
    try:
        binary = _scaled(to_binary(grammar, "as-written"))
    except InfiniteWeights as error:
        names = set(error.names)
        around = [r.left in names and not names.isdisjoint(r.right) and used.isdisjoint(r.right) for r in rules]
        place = places[around.index(True)] if any(around) else places[0]
        raise ValueError(f"{place}: derivations go round here without reading a symbol, and give one string infinite "
                         "weight: the weights around the circle have to be smaller") from None
    possible = _possible_lengths(binary)
    if not possible.any():
        raise ValueError(f"its shortest string has more than {MAX_LENGTH} symbols")
    if form != "regex":
        notes.append(f"the weights of all strings {whole}, and are taken relative to those of their length")
    if not possible[MAX_LENGTH // 2 :].any():
        longest = np.flatnonzero(possible)[-1]
        notes.append(f"its longest string of at most {MAX_LENGTH} symbols has {longest}")
    return OwnLanguage(name, form, grammar, binary, text, tuple(notes), total, possible)


def _cleaned(written: WrittenGrammar) -> tuple[list[int], list[str]]:
    """The rules that derivations of strings have, and a sentence for each nonterminal without any.

    Raises ValueError if there are none.
    """
    grammar, places = written
    fine = productive(grammar.rules, grammar.terminals)
    if grammar.start not in fine:
        raise ValueError(f"{places[0]}: derives no string: the language is empty")
    kept = [i for i, rule in enumerate(grammar.rules) if fine.issuperset(rule.right)]
    there = reachable(grammar.start, [grammar.rules[i][:2] for i in kept])
    notes = []
    symbols, terminals = (s for rule in grammar.rules for s in (rule.left, *rule.right)), set(grammar.terminals)
    for name in dict.fromkeys(s for s in symbols if s not in terminals):
        if name not in fine or name not in there:
            own = [p for p, rule in zip(places, grammar.rules, strict=True) if rule.left == name]
            place = (own or [p for p, rule in zip(places, grammar.rules, strict=True) if name in rule.right])[0]
            why = "is reached by no derivation" if name in fine else "derives no string"
            notes.append(f"{place}: {name.split()[-1]} {why}; its rules are left out")
    return [i for i in kept if grammar.rules[i].left in there], notes


def _short(rules: Iterable[Rule]) -> list[Rule]:
    """Rules of two symbols at most: a helper for each suffix of a longer one, shared by all that end so."""
    found, helpers = [], {}
    for left, right, weight in rules:
        while len(right) > 2:
            rest, new = right[1:], right[1:] not in helpers
            helper = helpers.setdefault(rest, f"suffix {len(helpers)}")
            found.append(Rule(left, (right[0], helper), weight))
            if not new:
                break
            left, right, weight = helper, rest, 1.0
        else:
            found.append(Rule(left, right, weight))
    return found


def _scaled(binary: BinaryGrammar) -> BinaryGrammar:
    """Every terminal times one factor, so that the strings of a length weigh together neither much nor little.

    Those of the start symbol, or, as long as it has none whose weight is known, of all nonterminals.
    """
    for longest in (4, 16, 64, 256):
        with np.errstate(all="ignore"):
            growth = np.log2(binary.inside_by_length(longest)[1:]) / np.arange(1, longest + 1)[:, None]
        later = growth[longest // 4 :]
        known = next((x[np.isfinite(x)] for x in (later[:, binary.start], later, growth) if np.isfinite(x).any()), ())
        if len(known):
            binary = replace(binary, lexical_weight=binary.lexical_weight * 2.0 ** -known.max())
    return binary


def _possible_lengths(binary: BinaryGrammar) -> np.ndarray:
    """Whether the start symbol has a string of each length, whatever it weighs: MAX_LENGTH + 1, bool."""
    possible = np.zeros((MAX_LENGTH + 1, binary.size), dtype=bool)
    possible[1, binary.lexical[:, 0]] = True
    left, first, second = binary.binary.T
    longer = binary.longer_firsts
    for length in range(2, MAX_LENGTH + 1):
        pairs = possible[1, first] & possible[length - 1, second]
        pairs[longer] = (possible[1:length, first[longer]] & possible[length - 1 : 0 : -1, second[longer]]).any(0)
        possible[length, left[pairs]] = True
    return possible[:, binary.start]
