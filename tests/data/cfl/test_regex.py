import itertools
import re

import numpy as np
import pytest

from seqstruct.data.cfl.chart import log_probabilities
from seqstruct.data.cfl.own import own_language
from seqstruct.data.cfl.sampler import sample_strings

PATTERNS = [
    "abc", "a|b", "a*", "(a|b)*", "a+b?", "(ab)*c", "a{3}", "a{2,4}b", "(a|bc){2,}", "a{,2}b", "(a?b?c?){1,3}",
    "(a*)*", "(a*b*)*", "((a|b)(a|c)?)+", "(a|ab)(c|bc)", "a*b*", "(|a)b", "()a|b()", "a{0}b",
    "(a|b)*a(a|b){2}", "(aa|aaa)+", "(a(b(c)?)?){1,2}", r"\+a|\(", "((a{2}){1,2}|b)*c", "(a+|b+)(a+|c)", "(ab|)*(c|a)",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_strings_are_those_that_python_matches(pattern):
    """All strings of up to six symbols; those of a length are alike probable."""
    language, matches = own_language(pattern, "regex", pattern), re.compile(pattern).fullmatch
    log_inside = language.log_inside(6)
    for length in range(1, 7):
        strings = list(itertools.product(range(len(language.terminals)), repeat=length))
        right = [matches("".join(language.terminals[i] for i in s)) is not None for s in strings]
        found = log_probabilities(language, strings)
        assert np.isfinite(log_inside[length]) == any(right)
        truth = np.where(right, -np.log(max(1, sum(right))), -np.inf)
        np.testing.assert_allclose(found, truth, rtol=0, atol=1e-12)


def test_spaces_are_for_the_eye():
    spaced, plain = (own_language(p, "regex", p) for p in (" ( a | b ) * c {2} ", "(a|b)*c{2}"))
    strings = list(itertools.product(range(3), repeat=4))
    np.testing.assert_array_equal(log_probabilities(spaced, strings), log_probabilities(plain, strings))


def test_all_strings_of_a_length_are_drawn_alike():
    language = own_language("r", "regex", "(a|b)*(b|c){2}a*")
    drawn = sample_strings(language, [5] * 4000, np.random.default_rng(2))
    _, counts = np.unique([int("".join(map(str, s)), 3) for s in drawn], return_counts=True)
    strings = [s for s in itertools.product("abc", repeat=5) if re.fullmatch("(a|b)*(b|c){2}a*", "".join(s))]
    assert len(counts) == len(strings)
    statistic = ((counts - 4000 / len(counts)) ** 2).sum() / (4000 / len(counts))
    assert abs(statistic - len(counts)) < 5 * np.sqrt(2 * len(counts))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a|b", "character 5: expected a \\), got the end"),
        ("a|b)", "character 4: expected a \\( to go with this \\), got '\\)'"),
        ("*a", "character 1: expected a symbol or a group, or \\\\\\* for the symbol itself"),
        ("a|*", "character 3: expected a symbol"),
        ("a**", "character 3: expected no repetition right after another"),
        ("a+?", "character 3: expected no repetition"),
        ("a{2}{3}", "character 5: expected no repetition"),
        ("a{3,2}", "character 2: expected {m,n} with m at most n"),
        ("a{x}", "character 2: expected a symbol"),
        ("[ab]", "character 1: expected a symbol"),
        ("a.", "character 2: expected a symbol"),
        ("^a$", "character 1: expected a symbol"),
        ("a\\", "character 3: expected a character that has a meaning of its own after"),
        (r"\d", "character 2: expected a character that has a meaning"),
        ("a{5000}", "expected at most 2,000 repetitions"),
        ("((a{99}){99}){99}", "more than 2,000 symbols once repetitions are written out"),
        ("(a|b)*a(a|b){12}", "its deterministic automaton has more than 1,000 states"),
        ("(" * 200 + "a" + ")" * 200, "at most 100 groups inside each other"),
        ("", "the empty string is its only string"),
        ("a{0}", "the empty string is its only string"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(pattern, message):
    with pytest.raises(ValueError, match=message):
        own_language(pattern, "regex", pattern)
