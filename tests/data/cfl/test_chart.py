import itertools
import json
import math

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from seqstruct.data.cfl import chart
from seqstruct.data.cfl.chart import chart_log_weights, log_probabilities
from seqstruct.data.cfl.grammar import GRAMMAR_FORMS
from seqstruct.data.cfl.hardest import hardest_log_weights
from seqstruct.data.cfl.languages import LANGUAGES, get_language
from seqstruct.data.cfl.own import own_language
from seqstruct.data.cfl.sampler import sample_strings
from tests.data.cfl.brute_force import enumerate_strings

LONGEST = {"marked-reversal": 7, "unmarked-reversal": 8, "padded-reversal": 8, "dyck": 6, "hardest-cfl": 8}


@pytest.mark.parametrize("name", LANGUAGES)
def test_reference_strings(name, golden):
    """Strings of length up to 100, in the language and not, against the reference parser."""
    cases = json.loads(golden("cfl", f"{name}.json").read_text("utf-8"))["strings"]
    found = log_probabilities(get_language(name), [case["tokens"] for case in cases])
    truth = [-math.inf if case["logp_given_length"] is None else case["logp_given_length"] for case in cases]
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["dyck", "padded-reversal"])
def test_reference_strings_as_written(name, golden):
    cases = json.loads(golden("cfl", f"{name}.json").read_text("utf-8"))["strings"]
    cases = [case for case in cases if case["in_language"]]
    found = log_probabilities(get_language(name, "as-written"), [case["tokens"] for case in cases])
    truth = [case["logp_given_length_untransformed_grammar"] for case in cases]
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_short_string_as_written(name):
    """Strings over the terminals, in the language or not, against the sum over all derivations."""
    language = get_language(name, "as-written")
    weights = enumerate_strings(language.grammar, LONGEST[name])
    for length in language.valid_lengths(1, LONGEST[name]):
        if name == "hardest-cfl":
            possible = [string for string in weights if len(string) == length]
            strings = [*possible, *(string[::-1] for string in possible if string[::-1] not in weights)]
        else:
            strings = list(itertools.product(language.terminals, repeat=length))
        total = sum(weight for string, weight in weights.items() if len(string) == length)
        found = log_probabilities(language, [language.encode(string) for string in strings])
        truth = [math.log(weights[s] / total) if s in weights else -math.inf for s in strings]
        np.testing.assert_allclose(found, truth, rtol=0, atol=1e-10)


def test_a_grammar_of_ones_own_may_have_the_name_of_the_hardest_language():
    own = own_language("hardest-cfl", "rules", 'S -> "a" S "b" [0.5] | "a" "b" [0.3] | "b" "a" [0.2]')
    found = log_probabilities(own, [own.encode(string) for string in ("ab", "ba", "bb", "aabb")])
    np.testing.assert_allclose(np.exp(found), [0.6, 0.4, 0.0, 0.6], rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", GRAMMAR_FORMS)
@pytest.mark.parametrize("name", [name for name in LANGUAGES if name != "hardest-cfl"])
def test_probabilities_of_one_length_sum_to_one(name, form):
    language = get_language(name, form)
    length = 7 if name in ("marked-reversal", "padded-reversal") else 6
    strings = list(itertools.product(range(len(language.terminals)), repeat=length))
    assert np.exp(log_probabilities(language, strings)).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", ["marked-reversal", "unmarked-reversal"])
def test_reversals_are_uniform(name):
    """Every string of a length is equally likely: one half for each free symbol."""
    language = get_language(name)
    lengths = language.valid_lengths(1, 101)
    found = log_probabilities(language, sample_strings(language, lengths, np.random.default_rng(5)))
    np.testing.assert_allclose(found, [-(length // 2) * math.log(2) for length in lengths], rtol=0, atol=1e-11)


def test_padded_reversal_in_closed_form():
    """p(w) = sum over h of 2^-h c^(h-1) p(middle) for w = u middle u^R with |u| = h and one symbol in the middle."""
    language, go, pad = get_language("padded-reversal"), 60 / 61, 30 / 31
    strings = sample_strings(language, [2, 3, 13, 40, 61, 88], np.random.default_rng(7))
    found = log_probabilities(language, strings)
    for string, value in zip(strings, found, strict=True):
        length, total = len(string), 0.0
        for half in range(1, length // 2 + 1):
            middle = string[half : length - half]
            if (string[:half] == string[: length - half - 1 : -1]).all() and len(set(middle.tolist())) <= 1:
                k = len(middle)
                end = (1 - go) / 2 * pad**k * (1 - pad) if k else (1 - go) * (1 - pad)
                total += 2.0**-half * go ** (half - 1) * end
        assert value == pytest.approx(math.log(total) - language.log_inside(length)[length], abs=1e-11)


def test_hardest_language_column_by_column_is_the_chart():
    """On samples, and on samples with one symbol changed, most of which are not in the language."""
    language, random = get_language("hardest-cfl"), np.random.default_rng(3)
    possible = 0
    for length in (6, 7, 13, 29):
        strings = np.stack(sample_strings(language, [length] * 60, random))
        places = random.integers(length, size=30)
        strings[np.arange(30), places] = random.integers(7, size=30)
        tokens = torch.as_tensor(strings)
        chart, columns = chart_log_weights(language.binary, tokens), hardest_log_weights(tokens)
        torch.testing.assert_close(columns, chart, rtol=0, atol=1e-11)
        possible += int(torch.isfinite(chart[:30]).sum())
    assert 0 < possible < 120


def test_hardest_language_on_any_short_string():
    language = get_language("hardest-cfl")
    generator = torch.Generator().manual_seed(11)
    for length in (1, 2, 5, 7, 9):
        tokens = torch.randint(7, (50, length), generator=generator)
        tokens[:, -1] = 5
        torch.testing.assert_close(hardest_log_weights(tokens), chart_log_weights(language.binary, tokens))


@pytest.mark.parametrize("name", LANGUAGES)
def test_batch_is_invisible(name):
    """Mixed lengths in any order give what each string gives alone; impossible lengths have probability zero."""
    language, random = get_language(name), np.random.default_rng(2)
    valid = language.valid_lengths(6, 30)
    strings = sample_strings(language, random.choice(valid, 13), random) + [[0], [1, 0, 0]]
    order = random.permutation(len(strings))
    together = log_probabilities(language, [strings[i] for i in order])
    for i, value in zip(order, together, strict=True):
        alone = log_probabilities(language, [strings[i]])[0]
        assert alone == value or abs(alone - value) < 1e-12


def test_no_strings_and_empty_strings():
    assert log_probabilities(get_language("dyck"), []).shape == (0,)
    with pytest.raises(ValueError, match="string 2 is empty"):
        log_probabilities(get_language("dyck"), [[0, 1], []])


@pytest.mark.parametrize("name", LANGUAGES)
def test_long_strings_do_not_underflow(name):
    language = get_language(name)
    length = language.valid_lengths(220, 225)[-1]
    value = log_probabilities(language, sample_strings(language, [length], np.random.default_rng(1)))[0]
    assert -2.0 * length < value < 0


class Greatest(TorchDispatchMode):
    """The most numbers that a tensor had which was made within it."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.numbers = max(self.numbers, result.numel())
        return result


def test_no_tensor_of_a_batch_is_larger_than_is_said(monkeypatch):
    """Also the products of a grammar that has many more pairs of symbols than symbols."""
    rules = " | ".join(f'"x{i}" S "y{i}"' for i in range(60))
    language = own_language("g", "rules", f'S -> {rules} | "c"')
    strings = sample_strings(language, [7] * 13, np.random.default_rng(1))
    monkeypatch.setattr(chart, "CELLS", 1 << 17)
    with Greatest() as greatest:
        found = log_probabilities(language, strings)
    assert greatest.numbers <= 1 << 17
    np.testing.assert_allclose(found, [-3 * math.log(60)] * 13, rtol=1e-12)
