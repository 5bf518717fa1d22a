import random

import pytest

from seqstruct.scoring.gleu import sentence_gleu


def by_hand(hypothesis, reference, order=4):
    """The lesser of precision and recall, each counted n-gram by n-gram."""
    def every(tokens):
        return [tuple(tokens[i : i + n]) for n in range(1, order + 1) for i in range(len(tokens) - n + 1)]

    ours, theirs = every(hypothesis), every(reference)
    matches = sum(min(ours.count(g), theirs.count(g)) for g in set(ours))
    return min(matches / len(ours), matches / len(theirs))


@pytest.mark.parametrize("order", [1, 4, 7])
def test_it_is_the_lesser_of_precision_and_recall(order):
    chooser = random.Random(order)
    for _ in range(20):
        hypothesis, reference = ([chooser.randrange(4) for _ in range(chooser.randint(1, 13))] for _ in range(2))
        expected = by_hand(hypothesis, reference, order)
        assert sentence_gleu(hypothesis, reference, order) == pytest.approx(expected, abs=1e-15)
        assert sentence_gleu(reference, hypothesis, order) == pytest.approx(expected, abs=1e-15)


def test_known_values():
    assert sentence_gleu("a b c".split(), "a b c".split()) == 1
    assert sentence_gleu("a b c".split(), "d e".split()) == 0
    assert sentence_gleu("a b".split(), "a b c".split()) == 3 / 6
    assert sentence_gleu([], []) == 1
    assert sentence_gleu([], [5]) == sentence_gleu([5], []) == 0


def test_bad_calls_are_refused():
    with pytest.raises(ValueError, match="order"):
        sentence_gleu([1], [1], 0)
