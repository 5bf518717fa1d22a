import itertools
import math

import numpy as np
import pytest
import torch

from seqstruct.data.cfl.chart import chart_log_weights, log_probabilities, string_log_weights
from seqstruct.data.cfl.languages import MAX_LENGTH
from seqstruct.data.cfl.own import own_language
from seqstruct.data.cfl.rules import read_rules
from seqstruct.data.cfl.sampler import sample_strings
from tests.data.cfl.brute_force import enumerate_strings
from tests.data.cfl.own_grammars import GRAMMARS, LARGE, LONGEST


@pytest.fixture(params=GRAMMARS)
def case(request):
    """A language, and the weight of each of its short strings by rewriting the grammar as it was written."""
    text = GRAMMARS[request.param]
    weights = enumerate_strings(read_rules(text.splitlines()).grammar, LONGEST.get(request.param, 5))
    weights.pop((), None)
    return own_language(request.param, "rules", text), weights, LONGEST.get(request.param, 5)


def test_every_short_string(case):
    """Also those that are not in the language: against the sum over all derivations."""
    language, weights, longest = case
    log_inside = language.log_inside(longest)
    for length in range(1, longest + 1):
        total = sum(weight for string, weight in weights.items() if len(string) == length)
        assert np.isfinite(log_inside[length]) == (total > 0) == language.possible[length]
        strings = list(itertools.product(language.terminals, repeat=length))
        found = log_probabilities(language, [language.encode(string) for string in strings])
        truth = [math.log(weights[s] / total) if weights.get(s) else -math.inf for s in strings]
        np.testing.assert_allclose(found, truth, rtol=0, atol=1e-9)


def test_frequencies_are_the_exact_probabilities(case):
    """Pearson's statistic over all strings of a length stays within five deviations of its mean."""
    language, weights, longest = case
    length = language.valid_lengths(1, longest)[-1]
    possible = {string: weight for string, weight in weights.items() if len(string) == length}
    number = {tuple(language.encode(string)): i for i, string in enumerate(possible)}
    counts = np.zeros(len(possible))
    for string in sample_strings(language, [length] * 3000, np.random.default_rng(4)):
        counts[number[tuple(string)]] += 1
    expected = np.array(list(possible.values())) / sum(possible.values()) * 3000
    statistic, freedom = ((counts - expected) ** 2 / expected).sum(), len(expected) - 1
    assert abs(statistic - freedom) <= 5 * np.sqrt(2 * freedom + (1 / expected).sum()) + 1e-9


@pytest.mark.parametrize("name", [name for name in GRAMMARS if name != "weights without a sum"])
def test_the_grammar_is_proper(name):
    language = own_language(name, "rules", GRAMMARS[name])
    for left in language.grammar.nonterminals:
        assert sum(r.weight for r in language.grammar.rules if r.left == left) == pytest.approx(1.0, abs=1e-6)
    assert language.total == pytest.approx(TOTALS.get(name, 1.0), rel=1e-7)


TOTALS = {
    "ambiguous": (math.sqrt(0.65) - 0.5) / 0.4,  # the lesser root of z = 0.3 z^2 + 0.2 z^3 + 0.5
    "weights that sum to less": 0.05 / 0.7,  # in closed form: z = 0.2 z + 0.1 z + 0.05
    "useless": 0.3 / 0.6,
    "unary cycle": 1.0,
}


def test_a_symbol_that_derives_the_empty_string_alone_and_barely():
    """E is empty with probability 1, in derivations of any size; then w is of a*b or, half as heavy each, of a*c."""
    text = 'S -> E "a" S E [0.5] | "b" [0.25] | E E E "c"\nE -> E E [1/2] | [1/2]'
    language = own_language("g", "rules", text)
    found = log_probabilities(language, [language.encode(s) for s in ("aab", "aac", "abc", "aba")])
    np.testing.assert_allclose(np.exp(found), [0.5, 0.5, 0, 0], atol=1e-12)
    assert language.total == pytest.approx(1.0, rel=1e-12)


def test_what_a_user_is_told():
    assert own_language("u", "rules", GRAMMARS["useless"]).notes == (
        'line 2: X -> X "a": X derives no string; its rules are left out',
        'line 4: Z -> "c": Z is reached by no derivation; its rules are left out',
        "the weights of all strings sum to 0.5, and are taken relative to those of their length",
    )
    assert own_language("w", "rules", GRAMMARS["weights without a sum"]).notes == (
        "the weights of all strings have no sum, and are taken relative to those of their length",
    )
    assert own_language("f", "rules", GRAMMARS["finite"]).notes[-1] == "its longest string of at most 400 symbols has 3"
    assert own_language("r", "regex", "aaa|a{500}").notes == ("its longest string of at most 400 symbols has 3",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('S -> "a" S', 'g: line 1: S -> "a" S: derives no string: the language is empty'),
        ("S -> T |\nT -> S", "g: the empty string is its only string"),
        ("S -> " + '"a" ' * 401, "g: its shortest string has more than 400 symbols"),
        ('S -> T [0.5] | "a"\nT -> S [2]', "g: line 1: S -> T: derivations go round here without reading a symbol"),
        ('S -> S S [0.6] | [0.5] | "a" [0.1]', "g: line 1: S -> S S: derivations go round here"),
        ('# x\nS -> "a" S | E\nE -> E [1]\n| "b" E [0.1] | [1]', "g: line 3: E -> E: derivations go round here"),
    ],
)
def test_languages_and_weights_that_are_none(text, message):
    with pytest.raises(ValueError, match=message):
        own_language("g", "rules", text)


def test_too_large_a_grammar():
    text = "\n".join(f'N{i} -> "a" N{(i + 1) % 1600} | "b"' for i in range(1600))
    with pytest.raises(ValueError, match="expected 1,500 nonterminals or states at most, .* got 1,600"):
        own_language("g", "rules", text)


def test_lengths_that_weigh_out_of_range_of_each_other():
    """Pairs of one kind a million times as heavy as a symbol of another: at length 201 1e600 lie between."""
    text = 'S -> A | B\nA -> "a" "a" A [1e6] | "a" "a" [1]\nB -> "b" "b" B [1e-3] | "b" [1]\n'
    language = own_language("g", "rules", text)
    assert language.valid_lengths(1, 30) == list(range(1, 31))
    with pytest.raises(ValueError, match="g: strings of length .* weigh too much or too little beside those of other"):
        language.valid_lengths(1, MAX_LENGTH)


@pytest.mark.parametrize("length", [7, 61, 250])
def test_a_large_vocabulary_does_not_underflow(length):
    """Every string of 3,000 words is alike probable, down to 1e-870."""
    for text in LARGE:
        language = own_language("g", "rules", text)
        strings = sample_strings(language, [length] * 2, np.random.default_rng(1))
        found = log_probabilities(language, strings)
        np.testing.assert_allclose(found, -length * math.log(3000), rtol=1e-12)


def test_heavy_symbols_do_not_overflow():
    """w and w reversed, of symbols that weigh 1e90 and 1e-90: alike probable in twos."""
    language = own_language("g", "rules", 'S -> "a" S "b" [1e90] | "b" S "a" [1e-90] | "c" [1]')
    found = log_probabilities(language, [language.encode(s) for s in ("aacbb", "abcab", "bacba", "bbcaa")])
    np.testing.assert_allclose(found, np.array([0, -180, -180, -360]) * math.log(10), atol=1e-9)


@pytest.mark.parametrize("weight", [5.0, 0.005])
def test_weights_whose_sum_is_beyond_float64(weight):
    """All strings of two symbols up to a length, or of it alone: they weigh 1e399 or 1e-798 together."""
    lines = ["start q0", *(f"q{i} q{i + 1} {symbol} {weight}" for i in range(399) for symbol in "ab")]
    for least in {399, 1 if weight > 1 else 399}:
        ends = (f"final q{i}" for i in range(least, 400))
        language = own_language("w", "wfsa", "\n".join([*lines, *ends]))
        assert language.total is None and "all strings have a sum beyond float64" in language.notes[0]
        lengths = language.valid_lengths(1, MAX_LENGTH)
        assert lengths == list(range(least, 400))
        strings = sample_strings(language, lengths[-3:], np.random.default_rng(1))
        found = log_probabilities(language, strings)
        np.testing.assert_allclose(found, [-len(s) * math.log(2) for s in strings], rtol=1e-10)


@pytest.mark.parametrize("weight", ["1e-200", "1e200"])
def test_weights_whose_product_is_beyond_float64(weight):
    language = own_language("g", "rules", f'S -> A B\nA -> "a" [{weight}] | "c" [{weight}]\nB -> "b" [{weight}]')
    assert language.total is None and language.valid_lengths(1, 9) == [2]
    found = log_probabilities(language, [language.encode(s) for s in ("ab", "cb", "bb")])
    np.testing.assert_allclose(np.exp(found), [0.5, 0.5, 0.0], rtol=1e-12)


def test_reading_a_right_linear_grammar_is_its_chart():
    text = 'S -> "a" S [0.3] | "a" T [0.2] | "b" | "b" S [0.2]\nT -> "b" T [0.5] | "a" S [0.3] | "a"'
    language = own_language("g", "rules", text)
    assert not language.binary.longer_firsts.any()
    for length in (1, 2, 5, 13):
        tokens = torch.randint(2, (7, length), generator=torch.Generator().manual_seed(length))
        chart = chart_log_weights(language.binary, tokens)
        torch.testing.assert_close(string_log_weights(language.binary, tokens), chart, rtol=0, atol=1e-11)
