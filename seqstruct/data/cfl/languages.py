"""The five languages of Stack Attention (DuSell and Chiang 2024), section 6, with their distributions.

The grammars are those of DuSell and Chiang 2020.  A mean count mu of a geometric number of repetitions is reached by
going on with probability mu / (mu + 1).  Log-probabilities are natural; `log p(w | l)` is the log-probability of a
string among the strings of its length l, summed over all its derivations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from seqstruct.data.cfl.grammar import BinaryGrammar, Grammar, Rule, to_binary

MAX_LENGTH = 400


def _continue(mean: float) -> float:
    return mean / (mean + 1)


def _grammar(terminals: str, start: str, *rules: tuple[str, str, float]) -> Grammar:
    """Rules as (left, right with spaces between symbols, weight)."""
    return Grammar(tuple(terminals), start, tuple(Rule(left, tuple(right.split()), w) for left, right, w in rules))


_PAIRS = ("()", "[]")
_GO, _PAD, _SPLIT, _NEST = _continue(60), _continue(30), _continue(1), _continue(39)
_COMMA, _SHORT, _LONG, _SEMICOLON = _continue(0.5), _continue(0.5), _continue(1), 0.25
_W = ("S", "0 S 0", _GO / 2), ("S", "1 S 1", _GO / 2)  # w and w reversed; w has mean length 60
_GRAMMARS = {
    "marked-reversal": _grammar("01#", "S", *_W, ("S", "#", 1 - _GO)),
    "unmarked-reversal": _grammar("01", "S", *_W, ("S", "", 1 - _GO)),
    # one symbol repeated in the middle, mean length 30
    "padded-reversal": _grammar(
        "01", "S", *(rule for a in "01" for rule in (
            ("S", f"{a} S {a}", _GO / 2), ("S", f"T{a}", (1 - _GO) / 2),
            (f"T{a}", f"{a} T{a}", _PAD), (f"T{a}", "", 1 - _PAD),
        )),
    ),
    # balanced brackets of two kinds; on average one split a level, and depth 40
    "dyck": _grammar(
        "()[]", "S", ("S", "S T", _SPLIT), ("S", "T", 1 - _SPLIT),
        *(rule for a, b in _PAIRS for rule in (("T", f"{a} S {b}", _NEST / 2), ("T", f"{a} {b}", (1 - _NEST) / 2))),
    ),
    # Greibach's hardest context-free language, over Dyck strings of two kinds of bracket
    "hardest-cfl": _grammar(
        "()[],;$", "S'", ("S'", "R $ Q S L ;", 1.0),
        ("L", "L' , U", 1.0), ("L'", ", V L'", _COMMA), ("L'", "", 1 - _COMMA),
        ("R", "U , R'", 1.0), ("R'", "R' V ,", _COMMA), ("R'", "", 1 - _COMMA),
        ("U", "W U", _SHORT), ("U", "", 1 - _SHORT), ("V", "W V", _LONG), ("V", "W", 1 - _LONG),
        *(("W", filler, 1 / 5) for filler in "()[]$"),
        ("Q", "L ; R", _SEMICOLON), ("Q", "", 1 - _SEMICOLON), ("S", "S Q T", 0.6), ("S", "T", 1 - 0.6),
        *(rule for a, b in _PAIRS for rule in (
            ("T", f"{a} Q S Q {b}", 0.75 / 2), ("T", f"{a} Q {b}", (1 - 0.75) / 2),
        )),
    ),
}
LANGUAGES = tuple(_GRAMMARS)


@dataclass(frozen=True, eq=False)
class Language:
    """A language and the distribution of its strings: uniform over the valid lengths asked for, p(w | l) within one.

    name: one of LANGUAGES.  form: which reading of the grammar, see `grammar.to_binary`.
    grammar: as written.  binary: the form that is sampled from and scored with.
    """

    name: str
    form: str
    grammar: Grammar
    binary: BinaryGrammar

    @property
    def terminals(self) -> tuple[str, ...]:
        """The symbols, in the order of their ids."""
        return self.grammar.terminals

    def inside(self, max_length: int) -> np.ndarray:
        """Weight of the strings of each length for each nonterminal of `binary`: (max_length + 1) x size, read-only.

        Raises ValueError beyond MAX_LENGTH, where weights would near the smallest float64.
        """
        if not 0 <= max_length <= MAX_LENGTH:
            raise ValueError(f"lengths go from 0 to {MAX_LENGTH}, got {max_length}")
        longest = min(MAX_LENGTH, 128 * -(-max(max_length, 1) // 128))  # few different sizes to keep
        return _inside(self, longest)[: max_length + 1]

    def log_inside(self, max_length: int) -> np.ndarray:
        """log Z(l) for l = 0 to max_length, nats: total weight of the strings of each length, -inf if there is none."""
        with np.errstate(divide="ignore"):
            return np.log(self.inside(max_length)[:, self.binary.start])

    def valid_lengths(self, low: int, high: int) -> list[int]:
        """The lengths from low to high (both included) that strings of the language have.

        Raises ValueError if there is none, or the range is empty, starts below 1 or ends beyond MAX_LENGTH.
        """
        if not 1 <= low <= high <= MAX_LENGTH:
            raise ValueError(f"lengths go from 1 to {MAX_LENGTH}, the smaller first; got {low}:{high}")
        log_inside = self.log_inside(high)
        valid = [length for length in range(low, high + 1) if log_inside[length] > -np.inf]
        if not valid:
            raise ValueError(f"{self.name} has no string of length {low if low == high else f'{low} to {high}'}")
        return valid

    def encode(self, symbols: Sequence[str]) -> list[int]:
        """Terminal ids of symbols; ValueError on a symbol that the language does not have."""
        ids = {terminal: i for i, terminal in enumerate(self.terminals)}
        for position, symbol in enumerate(symbols):
            if symbol not in ids:
                known = " ".join(self.terminals)
                raise ValueError(f"symbol {position + 1}, {symbol!r}, is not one of {self.name}: {known}")
        return [ids[symbol] for symbol in symbols]


@cache
def _inside(language: Language, max_length: int) -> np.ndarray:
    inside = language.binary.inside_by_length(max_length)
    inside.flags.writeable = False
    return inside


@cache
def get_language(name: str, form: str = "published") -> Language:
    """The language of a name; ValueError, with the names that exist, if there is none or the form is unknown."""
    if name not in _GRAMMARS:
        raise ValueError(f"no language is called {name!r}; there are: {', '.join(LANGUAGES)}")
    return Language(name, form, _GRAMMARS[name], to_binary(_GRAMMARS[name], form))
