import itertools

import numpy as np
import pytest

from seqstruct.data.cfl.chart import log_probabilities
from seqstruct.data.cfl.languages import get_language
from seqstruct.data.cfl.own import own_language
from seqstruct.data.cfl.prefixes import prefix_log_probabilities
from seqstruct.data.cfl.rules import read_rules
from seqstruct.data.cfl.sampler import sample_strings
from tests.data.cfl.brute_force import enumerate_strings
from tests.data.cfl.own_grammars import GRAMMARS, LARGE, LONGEST


def truth(weights, lengths):
    """The probability of every prefix: lengths alike probable, strings of one by their weights."""
    found = {}
    for length in lengths:
        strings = {string: weight for string, weight in weights.items() if len(string) == length}
        total = sum(strings.values()) * len(lengths)
        for string, weight in strings.items():
            for k in range(length + 1):
                found[string[:k]] = found.get(string[:k], 0.0) + weight / total
    return found


@pytest.mark.parametrize("name", GRAMMARS)
def test_prefixes_of_every_short_string(name):
    """Of strings that are in the language or not, longer than any length too, against all derivations."""
    longest = LONGEST.get(name, 5)
    weights = enumerate_strings(read_rules(GRAMMARS[name].splitlines()).grammar, longest)
    weights.pop((), None)
    language = own_language(name, "rules", GRAMMARS[name])
    lengths = language.valid_lengths(1, longest)
    for chosen in (lengths, lengths[-1:]):
        prefixes = truth(weights, chosen)
        for size in (1, 3):
            strings = list(itertools.product(language.terminals, repeat=size))
            found = prefix_log_probabilities(language, [language.encode(s) for s in strings], chosen)
            for string, values in zip(strings, found, strict=True):
                expected = [prefixes.get(string[:k], 0.0) for k in range(size + 1)]
                expected[-1] = prefixes.get(string, 0.0)
                np.testing.assert_allclose(np.exp(values), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("text", ["(a|b)*c{2,3}", "((a|bc)*a)+"])
def test_prefixes_of_an_expression(text):
    language = own_language(text, "regex", text)
    lengths = language.valid_lengths(1, 6)
    strings = [s for n in lengths for s in itertools.product(range(3), repeat=n)]
    known = log_probabilities(language, strings)
    weights = {s: np.exp(v) for s, v in zip(strings, known, strict=True) if np.isfinite(v)}
    prefixes = truth(weights, lengths)
    for string, values in zip(strings, prefix_log_probabilities(language, strings, lengths), strict=True):
        np.testing.assert_allclose(np.exp(values), [prefixes.get(string[:k], 0.0) for k in range(len(string) + 1)],
                                   rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ["dyck", "padded-reversal", "hardest-cfl"])
def test_what_may_come_next_sums_to_the_prefix(name):
    """The end counts among what may come, where the string has one of the lengths."""
    language = get_language(name)
    lengths = language.valid_lengths(8, 13)
    for string in sample_strings(language, lengths, np.random.default_rng(3)):
        k = len(string) * 2 // 3
        (own,) = prefix_log_probabilities(language, [string], lengths)
        others = [[*string[:k], symbol] for symbol in range(len(language.terminals))]
        more = sum(np.exp(values[-1]) for values in prefix_log_probabilities(language, others, lengths))
        end = 0.0
        if k in lengths:
            end = np.exp(log_probabilities(language, [string[:k]])[0]) / len(lengths)
        assert more + end == pytest.approx(np.exp(own[k]), rel=1e-10)


def test_a_string_is_its_own_last_prefix_where_its_length_is_the_only_one():
    for language in (get_language("dyck"), own_language("g", "rules", GRAMMARS["ambiguous"])):
        strings = sample_strings(language, [30] * 40, np.random.default_rng(3))
        found = prefix_log_probabilities(language, strings, [30])
        last = [values[-1] for values in found]
        np.testing.assert_allclose(last, log_probabilities(language, strings), rtol=0, atol=1e-10)
        assert max(abs(values[0]) for values in found) < 1e-12
        assert all((np.diff(values) <= 1e-12).all() for values in found)


def test_long_strings_of_a_large_vocabulary():
    for text in LARGE:
        language = own_language("g", "rules", text)
        strings = sample_strings(language, [150], np.random.default_rng(1))
        (found,) = prefix_log_probabilities(language, strings, [150])
        np.testing.assert_allclose(found, -np.arange(151) * np.log(3000), rtol=1e-11, atol=1e-11)


def test_refusals():
    language = get_language("dyck")
    assert prefix_log_probabilities(language, [], [4]) == []
    for lengths, message in (([5], "dyck has no string of length 5"), ([0], "length 0"), ([], "one length or more")):
        with pytest.raises(ValueError, match=message):
            prefix_log_probabilities(language, [[0, 1]], lengths)
    with pytest.raises(ValueError, match="string 2 is empty"):
        prefix_log_probabilities(language, [[0, 1], []], [4])
