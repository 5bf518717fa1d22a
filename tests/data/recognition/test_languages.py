"""The languages against definitions of the tests' own, over all short strings; how they are drawn: frequencies."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, prod, sqrt
from random import Random

import pytest

from seqstruct.data.recognition.automata import AUTOMATA, END, Automaton
from seqstruct.data.recognition.languages import LANGUAGES, LEVELS, bits_of, find_language, number, shares
from tests.data.recognition.definitions import DEFINITIONS, strings

LONGEST = {2: 10, 3: 7, 4: 7, 5: 6, 6: 5, 8: 4, 9: 4}  # by the size of the alphabet
DRAWS = 3000
EACH = pytest.mark.parametrize("name", LANGUAGES)


@cache
def members(name: str, longest: int) -> frozenset[str]:
    return frozenset(filter(DEFINITIONS[name], strings(LANGUAGES[name].terminals, longest)))


def test_the_eighteen_and_their_levels():
    assert set(LANGUAGES) == set(DEFINITIONS) and len(LANGUAGES) == 18
    assert Counter(language.level for language in LANGUAGES.values()) == dict(zip(LEVELS, (7, 4, 7), strict=True))
    assert all(END not in language.terminals for language in LANGUAGES.values())
    with pytest.raises(ValueError, match="no language is called 'nothing'; there are: even-pairs, repeat-01"):
        find_language("nothing")


def accepted(automaton: Automaton, string: str) -> bool:
    """Whether the run of the string ends in an accepting state."""
    state = 0
    for symbol in string:
        if (state := automaton.arcs[state].get(symbol)) is None:
            return False
    return state in automaton.accepting


@EACH
def test_membership_is_the_definition(name):
    language = LANGUAGES[name]
    longest = LONGEST[len(language.terminals)]
    found = {s for s in strings(language.terminals, longest) if language.accepts(s)}
    assert found == members(name, longest) and found
    assert {n for n in range(longest + 1) if language.has_length(n)} == {len(s) for s in found}
    if name in AUTOMATA:
        assert {s for s in strings(language.terminals, longest) if accepted(AUTOMATA[name], s)} == found


@EACH
def test_what_is_drawn_is_a_member_of_the_length(name):
    language, generator = LANGUAGES[name], Random(3)
    for length in [*range(70), 97, 255, 499, 500]:
        if language.has_length(length):
            string = language.draw(length, generator)
            assert len(string) == length and language.accepts(string)
            assert name == "missing-duplicate" and length > 12 or name == "compute-sqrt" or DEFINITIONS[name](string)
            follow = language.follow(string)
            assert all(s in may for s, may in zip([*string, END], follow, strict=True))
    assert language.draw(20 if language.has_length(20) else 21, Random(5)) == language.draw(
        20 if language.has_length(20) else 21, Random(5))


# up to which length all strings are looked at, and up to which prefixes go on as they do to all lengths
PREFIXES = {
    "even-pairs": (8, 5), "repeat-01": (8, 5), "parity": (8, 5), "cycle-navigation": (4, 2),
    "modular-arithmetic": (5, 2), "dyck-2-3": (8, 3), "first": (8, 5), "majority": (11, 5),
    "stack-manipulation": (7, 1),
    "marked-reversal": (9, 3), "unmarked-reversal": (10, 4), "marked-copy": (9, 3), "missing-duplicate": (8, 3),
    "odds-first": (9, 3), "binary-addition": (8, 1), "binary-multiplication": (8, 1), "compute-sqrt": (8, 3),
    "bucket-sort": (5, 1),
}


@EACH
def test_what_may_come_next(name):
    longest, depth = PREFIXES[name]
    language, next_of = LANGUAGES[name], defaultdict(set)
    for string in filter(language.accepts, strings(language.terminals, longest)):
        for t, symbol in enumerate([*string, END]):
            next_of[string[:t]].add(symbol)
    checked = set()
    for string in filter(language.accepts, strings(language.terminals, min(longest, 7))):
        for t, may in enumerate(language.follow(string)[: depth + 1]):
            assert set(may) == next_of[string[:t]] and len(set(may)) == len(may), (string, t)
            checked.add(string[:t])
    assert len(checked) > 1


@pytest.mark.parametrize("name, string, expected", [
    ("binary-addition", "1+1=010", ["01", "01+", "01", "01=", "0", "1", "0$", "0$"]),
    ("binary-addition", "0+0=0", ["01", "01+", "01", "01=", "0", "0$"]),
    ("compute-sqrt", "001=01", ["01", "01=", "01=", "01=", "0", "1", "0$"]),
    ("stack-manipulation", "1-+0-#", ["01+#", "01+#-", "+#", "01", "+#-", "+#", "$"]),
    ("stack-manipulation", "+0#0", ["01+#", "01", "+#-", "0", "$"]),
    ("missing-duplicate", "0_01", ["01_", "01_", "01", "01", "01$"]),
    ("bucket-sort", "31#13", ["12345#", "12345#", "12345#", "1", "3", "$"]),
])
def test_what_may_come_next_by_hand(name, string, expected):
    assert [set(may) for may in LANGUAGES[name].follow(string)] == [set(may) for may in expected]


def frequencies_are(probabilities: dict[str, float], draw) -> None:
    """Pearson's statistic stays within five deviations of its mean, and nothing else is drawn."""
    assert sum(probabilities.values()) == pytest.approx(1)
    counts = Counter(draw() for _ in range(DRAWS))
    assert set(counts) <= set(probabilities)
    expected = {key: DRAWS * float(p) for key, p in probabilities.items() if p}
    statistic = sum((counts[key] - e) ** 2 / e for key, e in expected.items())
    freedom = len(expected) - 1
    assert abs(statistic - freedom) <= 5 * sqrt(2 * freedom + sum(1 / e for e in expected.values())) + 1e-9


@pytest.mark.parametrize("name, length", [
    ("even-pairs", 5), ("repeat-01", 6), ("parity", 5), ("cycle-navigation", 4), ("modular-arithmetic", 5),
    ("dyck-2-3", 6), ("first", 5),
])
def test_regular_strings_have_their_exact_probabilities(name, length):
    """Each symbol, and the end, is one of those that may come next with one probability, given the length."""
    longest = {"modular-arithmetic": 5, "cycle-navigation": 4}.get(name, 8)
    next_of = defaultdict(set)
    for string in members(name, longest):
        for t, symbol in enumerate([*string, END]):
            next_of[string[:t]].add(symbol)
    if name == "modular-arithmetic":  # four operators after a value; longer strings are not looked at
        next_of = defaultdict(lambda: "+-*=", {p: s for p, s in next_of.items() if p[-1:].isdigit() is False})
    at_once = name in ("cycle-navigation", "modular-arithmetic")  # no member begins another one
    weight = {s: prod(Fraction(1, len(next_of[s[:t]])) for t in range(length)) / (1 if at_once else len(next_of[s]))
              for s in members(name, length) if len(s) == length}
    total, generator = sum(weight.values()), Random(11)
    frequencies_are({s: w / total for s, w in weight.items()}, lambda: LANGUAGES[name].draw(length, generator))


def by_choices(name: str, length: int) -> dict[str, Fraction]:
    """Probabilities of strings, added up over everything that may be drawn."""
    found: dict[str, Fraction] = defaultdict(Fraction)
    half = length // 2
    if name == "majority":
        counts = range(half + 1, length + 1)
        for s in members(name, length):
            if len(s) == length:
                found[s] = Fraction(1, len(counts) * comb(length, s.count("1")))
    elif name == "missing-duplicate":
        for w in product("01", repeat=half):
            for i in range(half):
                u = "".join(w[:i]) + "1" + "".join(w[i + 1 :])
                ones = [m.start() for m in re.finditer("1", u + u)]
                for one in ones:
                    s = (u + u)[:one] + "_" + (u + u)[one + 1 :]
                    found[s] += Fraction(1, 2**half * half * len(ones))
    else:
        sizes = product(range(length), repeat=2)
        splits = [(size, pushes) for size, pushes in sizes if 2 * size + 3 * pushes + 1 == length]

        def walk(begun: str, stack: str, pushes: int, p: Fraction) -> None:
            if stack:
                walk(begun + "-", stack[:-1], pushes, p / 2)
                p = p / 2
            if not pushes:
                found[begun + "#" + stack[::-1]] += p
                return
            for symbol in "01":
                walk(begun + "+" + symbol, stack + symbol, pushes - 1, p / 2)

        for size, pushes in splits:
            for w in map("".join, product("01", repeat=size)):
                walk(w, w, pushes, Fraction(1, len(splits) * 2**size))
    return found


@pytest.mark.parametrize("name, length", [
    ("majority", 5), ("majority", 4), ("missing-duplicate", 6), ("stack-manipulation", 7), ("stack-manipulation", 8),
])
def test_strings_drawn_by_choices_have_their_probabilities(name, length):
    generator = Random(12)
    frequencies_are(by_choices(name, length), lambda: LANGUAGES[name].draw(length, generator))


@pytest.mark.parametrize("name, length", [("marked-reversal", 7), ("unmarked-reversal", 8), ("marked-copy", 7),
                                          ("odds-first", 9), ("bucket-sort", 5)])
def test_words_are_uniform(name, length):
    there, generator = [s for s in members(name, length) if len(s) == length], Random(13)
    frequencies_are({s: Fraction(1, len(there)) for s in there}, lambda: LANGUAGES[name].draw(length, generator))


@pytest.mark.parametrize("name, length, expected", [
    ("binary-addition", 5, {"0+0=0": 1 / 4, "0+1=1": 3 / 8, "1+0=1": 3 / 8}),
    ("binary-multiplication", 5, dict.fromkeys(["0*0=0", "0*1=0", "1*0=0", "1*1=1"], 1 / 4)),
    ("compute-sqrt", 3, {"0=0": 1 / 2, "1=1": 1 / 2}),
    ("compute-sqrt", 4, {"0=00": 1 / 2, "1=10": 1 / 2}),
])
def test_short_numbers_have_their_probabilities(name, length, expected):
    generator = Random(14)
    frequencies_are(expected, lambda: LANGUAGES[name].draw(length, generator))


def test_lengths_of_numbers():
    """Two shares of a uniform point; of three, the first two are alike on average."""
    generator = Random(15)
    frequencies_are({(1, 3): 1 / 2, (2, 2): 1 / 2}, lambda: tuple(shares(4, (1, 1), generator)))
    drawn = [shares(103, (1, 1, 2), generator) for _ in range(DRAWS)]
    assert all(sum(sizes) == 103 and min(sizes) >= 1 for sizes in drawn)
    means = [sum(column) / DRAWS for column in zip(*drawn, strict=True)]
    assert means == pytest.approx([25.5, 26, 51.5], abs=2)


def test_bits():
    assert (bits_of(0), bits_of(6), bits_of(6, 5), bits_of(6, 2)) == ("0", "011", "01100", "011")
    assert all(number(bits_of(value, 7)) == value for value in range(40))


def test_lengths_that_there_are_not():
    language = LANGUAGES["dyck-2-3"]
    assert language.lengths(0, 5) == [0, 2, 4]
    for low, high, told in ((3, 3, "dyck-2-3 has no string of length 3$"), (5, 4, "the smaller first; got 5:4"),
                            (-1, 4, "got -1:4")):
        with pytest.raises(ValueError, match=told):
            language.lengths(low, high)
    with pytest.raises(ValueError, match="no string of length 3"):
        AUTOMATA["dyck-2-3"].draw(3, Random(0))
