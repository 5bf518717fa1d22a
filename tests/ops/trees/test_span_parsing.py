"""Greedy trees: scores that name a tree give it, and the published algorithms hold on small sentences."""

import pytest
import torch

from seqstruct.ops.trees.span_parsing import (
    left_branching,
    random_branching,
    right_branching,
    split_by_distances,
    split_by_span_scores,
    split_top_down,
)
from tests.ops.trees.enumeration import split_spans, trees_over


def every_tree(length):
    """All binary trees, each the set of its spans of two words and more."""
    return {frozenset((first, last) for first, last in tree if first < last) for tree in trees_over(0, length - 1)}


@pytest.mark.parametrize("add_left", [False, True])
@pytest.mark.parametrize("length", [1, 2, 5, 6])
def test_any_tree_comes_out_of_scores_that_name_its_spans(length, add_left):
    for tree in every_tree(length):
        scores = torch.zeros(length, length)
        for first, last in tree:
            scores[first, last] = 1.0
        scores.fill_diagonal_(0.5)
        assert split_spans(split_by_span_scores(scores, add_left)) == tree


def test_splits_maximise_the_right_part(generator):
    scores = torch.randn(7, 7, generator=generator)
    for add_left in (False, True):
        splits = split_by_span_scores(scores, add_left)
        assert len(splits) == 6
        for first, middle, last in splits:
            total = [scores[m, last] + add_left * scores[first, m - 1] for m in range(first + 1, last + 1)]
            assert middle == first + 1 + max(range(len(total)), key=lambda m: float(total[m]))


def test_the_right_part_alone_and_both_parts_can_differ():
    scores = torch.zeros(3, 3)
    scores[1, 2], scores[2, 2], scores[0, 1] = 1.0, 0.9, 0.5
    assert split_by_span_scores(scores)[0] == (0, 1, 2)
    assert split_by_span_scores(scores, add_left=True)[0] == (0, 2, 2)


def shen(distances, words):
    """The recursion of Shen et al. 2018a as nested lists."""
    if len(words) == 1:
        return words[0]
    at = max(range(len(words)), key=lambda i: (distances[i], -i))
    right = words[at]
    if words[at + 1 :]:
        right = [right, shen(distances[at + 1 :], words[at + 1 :])]
    return [shen(distances[:at], words[:at]), right] if at else right


def nested(splits, first, last):
    if first == last:
        return first
    middle = next(m for f, m, n in splits if (f, n) == (first, last))
    return [nested(splits, first, middle - 1), nested(splits, middle, last)]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 13])
def test_distances_give_the_published_recursion(generator, length):
    for _ in range(20):
        distances = torch.rand(length, generator=generator)
        splits = split_by_distances(distances)
        assert nested(splits, 0, length - 1) == shen(distances.tolist(), list(range(length)))


def test_distances_cannot_close_open_open():
    """((a b) ((c d) e)) has "close, open, open"; no order of distances gives it."""
    order = torch.tensor([[a, b, c, d, e] for a in range(5) for b in range(5) for c in range(5) for d in range(5)
                          for e in range(5) if len({a, b, c, d, e}) == 5], dtype=torch.float)
    wanted = {(0, 4), (0, 1), (2, 4), (2, 3)}
    assert all(split_spans(split_by_distances(d)) != wanted for d in order)


def test_branching_baselines(generator):
    assert split_spans(right_branching(4)) == {(0, 3), (1, 3), (2, 3)}
    assert split_spans(left_branching(4)) == {(0, 3), (0, 2), (0, 1)}
    assert right_branching(1) == left_branching(0) == []
    assert {frozenset(split_spans(random_branching(4, generator))) for _ in range(200)} == every_tree(4)


def test_long_sentences_need_no_recursion():
    assert len(right_branching(5000)) == 4999


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="N N, got"):
        split_by_span_scores(torch.zeros(3, 4))
    with pytest.raises(ValueError, match="distances N"):
        split_by_distances(torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"\[0, 2\] cannot be split before word 0"):
        split_top_down(3, lambda first, last: 0)
