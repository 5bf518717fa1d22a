import itertools

import numpy as np
import pytest

from seqstruct.data.cfl.chart import log_probabilities
from seqstruct.data.cfl.grammar import GRAMMAR_FORMS
from seqstruct.data.cfl.languages import LANGUAGES, get_language
from seqstruct.data.cfl.sampler import sample_strings

DRAWS = 4000


@pytest.mark.parametrize("form", GRAMMAR_FORMS)
@pytest.mark.parametrize("name", LANGUAGES)
def test_frequencies_are_the_exact_probabilities(name, form):
    """Pearson's statistic over all strings of a length stays within five deviations of its mean."""
    language = get_language(name, form)
    length = {"marked-reversal": 7, "unmarked-reversal": 6, "padded-reversal": 7, "dyck": 6, "hardest-cfl": 7}[name]
    if name == "hardest-cfl":  # of 7^7 strings, those that are drawn; the rest is one more cell
        strings = sorted({tuple(s) for s in sample_strings(language, [length] * 2000, np.random.default_rng(9))})
    else:
        strings = list(itertools.product(range(len(language.terminals)), repeat=length))
    probabilities = np.exp(log_probabilities(language, strings))
    possible = probabilities > 0
    drawn = {string: 0 for string in strings}
    outside = 0
    for string in map(tuple, sample_strings(language, [length] * DRAWS, np.random.default_rng(4))):
        if string in drawn:
            drawn[string] += 1
        else:
            outside += 1
    counts = np.array([drawn[string] for string in strings])
    assert (counts[~possible] == 0).all()
    expected, counts = probabilities[possible] * DRAWS, counts[possible]
    rest = DRAWS - expected.sum()
    if rest > 1e-6:
        expected, counts = np.append(expected, rest), np.append(counts, outside)
    else:
        assert outside == 0
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = len(expected) - 1
    deviation = np.sqrt(2 * freedom + (1 / expected).sum())  # large where cells are rare
    assert abs(statistic - freedom) < 5 * deviation


@pytest.mark.parametrize("name", LANGUAGES)
def test_samples_have_the_lengths_and_are_in_the_language(name):
    language, random = get_language(name), np.random.default_rng(8)
    lengths = random.choice(language.valid_lengths(1, 60), 200)
    strings = sample_strings(language, lengths, random)
    assert [len(string) for string in strings] == lengths.tolist()
    assert np.isfinite(log_probabilities(language, strings)).all()


def test_a_seed_decides_the_strings():
    language = get_language("dyck")
    one, two, other = (sample_strings(language, [20] * 5, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert any((a != b).any() for a, b in zip(one, other, strict=True))


def test_no_lengths_and_impossible_lengths():
    language, random = get_language("dyck"), np.random.default_rng(0)
    assert sample_strings(language, [], random) == []
    for lengths in ([4, 5], [0], [2], [-3, 4]):
        with pytest.raises(ValueError, match="dyck has no string of length"):
            sample_strings(language, lengths, random)


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_shortest_string(name):
    language = get_language(name)
    shortest = language.valid_lengths(1, 10)[0]
    (string,) = sample_strings(language, [shortest], np.random.default_rng(0))
    assert len(string) == shortest
