"""Unlabeled F1 by both conventions and the counts of splits, by hand."""

import pytest

from seqstruct.data.corpora.parsed_text import gold_tree
from seqstruct.data.text.trees import parse_trees, read_trees, spans, words
from seqstruct.ops.trees import right_branching
from seqstruct.scoring.bracketing import branching, score_brackets
from tests.ops.trees.enumeration import split_spans


def trees(*texts):
    return [next(iter(parse_trees([text]))) for text in texts]


GOLD = [{(0, 3), (0, 1), (2, 3)}, {(0, 1)}, {(0, 2)}, set()]
FOUND = [{(0, 3), (1, 3), (2, 3)}, {(0, 1)}, {(0, 2), (1, 2)}, set()]
LENGTHS = [4, 2, 3, 1]


def test_by_corpus_all_brackets_count_with_the_whole_ones():
    score = score_brackets(GOLD, FOUND, LENGTHS)
    assert score == pytest.approx((100 * 2 * 4 / 11, 100 * 4 / 6, 100 * 4 / 5))


def test_by_sentence_without_the_whole_brackets():
    score = score_brackets(GOLD, FOUND, LENGTHS, "sentence")
    # sentence 1: 1 of 2 and 1 of 2; sentence 3: precision 0, recall 1; sentences 2 and 4 have nothing but the whole
    assert score == pytest.approx((100 * (0.5 + 1 + 0 + 1) / 4, 100 * (0.5 + 1 + 0 + 1) / 4, 100 * (0.5 + 3) / 4))


def test_a_perfect_parse():
    for convention in ("corpus", "sentence"):
        assert score_brackets(GOLD, GOLD, LENGTHS, convention) == (100, 100, 100)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="one at least, got 0"):
        score_brackets([], [], [])
    with pytest.raises(ValueError, match="got 4 and 3"):
        score_brackets(GOLD, FOUND[:3], LENGTHS)
    with pytest.raises(ValueError, match="'macro'"):
        score_brackets(GOLD, FOUND, LENGTHS, "macro")


def test_splits_to_the_left_and_to_the_right():
    left, right = "(X (X (A a) (B b)) (C c))", "(X (A a) (X (B b) (C c)))"
    assert branching(trees(left)) == (100, 0)
    assert branching(trees(right, right, right, left)) == (25, 75)
    assert branching(trees("(X (A a) (B b) (C c))", right)) == (0, 50)
    assert branching(trees("(Y (X (A a) (X (B b) (Z (C c)))))")) == (0, 100)
    assert branching(trees("(X (X (A a) (B b)) (X (C c) (D d)))", left)) == (50, 0)
    with pytest.raises(ValueError, match="three words"):
        branching(trees("(X (A a) (B b))"))


def test_right_branching_has_the_published_score_on_real_trees(reference):
    """Table 3.3 of the thesis quotes 40.7 on WSJ-40; this is another part of the same corpus."""
    gold = [gold_tree(tree) for tree in read_trees(reference / "data" / "nltk" / "treebank.zip")]
    gold = [tree for tree in gold if tree is not None and len(words(tree)) <= 40]
    lengths = [len(words(tree)) for tree in gold]
    found = [split_spans(right_branching(length)) for length in lengths]
    score = score_brackets([spans(tree) for tree in gold], found, lengths)
    assert abs(score.f1 - 40.7) < 0.5
    assert branching(gold).right > 40
