"""Baselines without a model: Kneser-Ney n-grams against their definition, and tables made by hand."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict

import pytest

from seqstruct.scoring.baselines import (
    UNKNOWN,
    KneserNey,
    most_frequent_accuracy,
    most_frequent_sequence,
    neighbour_heads,
    random_choice,
)


def texts_of(seed, count, letters="abcd"):
    generator = random.Random(seed)
    return [[generator.choice(letters) for _ in range(generator.randint(0, 7))] + ["."] for _ in range(count)]


class Definition:
    """The recursion as it is written, over dictionaries."""

    def __init__(self, texts, order, discount=None):
        self.order, self.vocabulary = order, {UNKNOWN} | {token for text in texts for token in text}
        self.counts = {n: Counter() for n in range(1, order + 1)}
        for text in texts:
            padded = ["^"] * (order - 1) + list(text)
            for end in range(order, len(padded) + 1):
                self.counts[order][tuple(padded[end - order : end])] += 1
        for n in range(order - 1, 0, -1):
            before = defaultdict(set)
            for first, *rest in self.counts[n + 1]:
                before[tuple(rest)].add(first)
            self.counts[n] = Counter({gram: len(firsts) for gram, firsts in before.items()})
        self.discounts = {n: discount or self.estimate(n) for n in self.counts}

    def estimate(self, n):
        one, two = (sum(count == k for count in self.counts[n].values()) for k in (1, 2))
        return one / (one + 2 * two) if one and two else 0.75

    def probability(self, context, token, n=None):
        n = self.order if n is None else n
        if n == 0:
            return 1 / len(self.vocabulary)
        history = tuple(context[len(context) - n + 1 :])
        after = {gram[-1]: count for gram, count in self.counts[n].items() if gram[:-1] == history}
        lower = self.probability(context, token, n - 1)
        total = sum(after.values())
        if not total:
            return lower
        D = self.discounts[n]
        return max(after.get(token, 0) - D, 0) / total + D * len(after) / total * lower


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("discount", [None, 0.75, 1.0])
def test_kneser_ney_is_its_definition(order, discount):
    train, test = texts_of(order, 11), texts_of(10 + order, 5, "abcde")
    model, truth = KneserNey(train, order, discount), Definition(train, order, discount)
    expected = []
    for text in test:
        padded = ["^"] * (order - 1) + [token if token in truth.vocabulary else UNKNOWN for token in text]
        expected += [math.log(truth.probability(padded[i - order + 1 : i], padded[i]))
                     for i in range(order - 1, len(padded))]
    assert model.log_probabilities(test).tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_kneser_ney_sums_to_one_after_every_context(order):
    texts = texts_of(3, 13)
    model, vocabulary = KneserNey(texts, order), {UNKNOWN, *itertools.chain.from_iterable(texts)}
    contexts = [list(c) for n in range(4) for c in itertools.product(["a", "c", ".", "never seen"], repeat=n)]
    for context in contexts:
        last = [math.exp(model.log_probabilities([[*context, token]])[-1]) for token in vocabulary]
        assert sum(last) == pytest.approx(1.0, rel=1e-12)


def test_a_bigram_by_hand():
    # after "a" there were b, b and "."; the bigrams ^a, ab, ba, b., a. are five types with the counts 2, 2, 1, 1, 1
    model = KneserNey([["a", "b", "a", "."], ["a", "b", "."]], 2)
    high, low = 3 / (3 + 2 * 2), 1 / (1 + 2 * 2)  # of counts 2 2 1 1 1, and of the tokens before a, b, ".": 2, 1, 2
    unigram = (1 - low) / 5 + low * 3 / 5 / 4
    expected = (2 - high) / 3 + high * 2 / 3 * unigram
    assert math.exp(model.log_probabilities([["a", "b"]])[1]) == pytest.approx(expected, rel=1e-12)


def test_bad_settings_are_refused():
    for order, discount, texts in ((0, None, [["a"]]), (2, 0.0, [["a"]]), (2, 1.5, [["a"]]), (2, None, [[], []])):
        with pytest.raises(ValueError, match="expected"):
            KneserNey(texts, order, discount)


def test_the_most_frequent_label_given_the_first_token():
    train = [("MAX", 9), ("MAX", 9), ("MAX", 8), ("MIN", 0), ("MIN", 1), ("MIN", 0), ("SM", 9)]
    test = [("MAX", 9), ("MAX", 8), ("MIN", 0), ("MIN", 0), ("MED", 9), ("SM", 4), ("MED", 3)]
    assert most_frequent_accuracy(train, test) == pytest.approx(100 * 4 / 7)
    same = [[("", label) for _, label in pairs] for pairs in (train, test)]
    assert most_frequent_accuracy(*same) == pytest.approx(100 * 2 / 7)
    for pairs in (([], test), (train, [])):
        with pytest.raises(ValueError, match="expected labels"):
            most_frequent_accuracy(*pairs)


def test_the_most_frequent_sequence_follows_what_it_chose():
    # three of five begin with "(", of these two go on with 1; position by position it would be "( 2"
    sequences = ["( 1 )".split(), "( 1".split(), "( 3".split(), "4 2".split(), "5 2".split()]
    assert most_frequent_sequence(sequences) == ["(", "1", ")"]
    assert most_frequent_sequence(sequences, longest=1) == ["("]
    assert most_frequent_sequence([["a"], [], []]) == [] == most_frequent_sequence([])


def test_heads_of_neighbours():
    assert neighbour_heads(4, "previous") == [0, 1, 2, 3]
    assert neighbour_heads(4, "next") == [2, 3, 4, 0]
    assert neighbour_heads(1, "next") == [0] and neighbour_heads(0, "next") == neighbour_heads(0, "previous") == []
    with pytest.raises(ValueError, match="previous or next"):
        neighbour_heads(3, "left")


@pytest.mark.parametrize("things, chosen", [(5, 2), (4, 3), (3, 3), (7, 1)])
def test_a_random_choice_is_one_of_all(things, chosen):
    assert random_choice(things, chosen) == 1 / len(list(itertools.permutations(range(things), chosen)))
    assert random_choice(chosen - 1, chosen) == 0.0
