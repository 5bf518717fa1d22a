"""The five languages of Stack Attention (DuSell and Chiang 2024), section 6, with their distributions.

The grammars are those of DuSell and Chiang 2020.  A mean count mu of a geometric number of repetitions is reached by
going on with probability mu / (mu + 1).  Log-probabilities are natural; `log p(w | l)` is the log-probability of a
string among the strings of its length l, summed over all its derivations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def _marked_reversal() -> Grammar:
    """w # w reversed; w has mean length 60."""
    go = _continue(60)
    return _grammar("01#", "S", ("S", "0 S 0", go / 2), ("S", "1 S 1", go / 2), ("S", "#", 1 - go))


def _unmarked_reversal() -> Grammar:
    """w w reversed; w has mean length 60."""
    go = _continue(60)
    return _grammar("01", "S", ("S", "0 S 0", go / 2), ("S", "1 S 1", go / 2), ("S", "", 1 - go))


def _padded_reversal() -> Grammar:
    """w, one symbol repeated, w reversed; w has mean length 60, the padding 30."""
    go, pad = _continue(60), _continue(30)
    rules = []
    for a in "01":
        rules += [("S", f"{a} S {a}", go / 2), ("S", f"T{a}", (1 - go) / 2)]
        rules += [(f"T{a}", f"{a} T{a}", pad), (f"T{a}", "", 1 - pad)]
    return _grammar("01", "S", *rules)


def _dyck() -> Grammar:
    """Balanced brackets of two kinds; on average one split a level, and depth 40."""
    split, nest = _continue(1), _continue(39)
    rules = [("S", "S T", split), ("S", "T", 1 - split)]
    for a, b in ("()", "[]"):
        rules += [("T", f"{a} S {b}", nest / 2), ("T", f"{a} {b}", (1 - nest) / 2)]
    return _grammar("()[]", "S", *rules)


def _hardest_cfl() -> Grammar:
    """Greibach's hardest context-free language, over Dyck strings of two kinds of bracket."""
    comma, short, long, semicolon, split, nest = _continue(0.5), _continue(0.5), _continue(1), 0.25, 0.6, 0.75
    rules = [
        ("S'", "R $ Q S L ;", 1.0),
        ("L", "L' , U", 1.0),
        ("L'", ", V L'", comma),
        ("L'", "", 1 - comma),
        ("R", "U , R'", 1.0),
        ("R'", "R' V ,", comma),
        ("R'", "", 1 - comma),
        ("U", "W U", short),
        ("U", "", 1 - short),
        ("V", "W V", long),
        ("V", "W", 1 - long),
        *(("W", filler, 1 / 5) for filler in "()[]$"),
        ("Q", "L ; R", semicolon),
        ("Q", "", 1 - semicolon),
        ("S", "S Q T", split),
        ("S", "T", 1 - split),
    ]
    for a, b in ("()", "[]"):
        rules += [("T", f"{a} Q S Q {b}", nest / 2), ("T", f"{a} Q {b}", (1 - nest) / 2)]
    return _grammar("()[],;$", "S'", *rules)


_GRAMMARS: dict[str, Callable[[], Grammar]] = {
    "marked-reversal": _marked_reversal,
    "unmarked-reversal": _unmarked_reversal,
    "padded-reversal": _padded_reversal,
    "dyck": _dyck,
    "hardest-cfl": _hardest_cfl,
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
    grammar = _GRAMMARS[name]()
    return Language(name, form, grammar, to_binary(grammar, form))
