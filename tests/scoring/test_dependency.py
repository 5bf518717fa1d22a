"""Counts of parsers by hand."""

import pytest
import torch

from seqstruct.scoring.dependency import attachment_counts, f1, graph_counts, kinds_of_change, share


def test_attachment_with_and_without_punctuation():
    gold = torch.tensor([[2, 0, 2], [0, 1, -1]])
    heads = torch.tensor([[2, 0, 1], [0, 0, 0]])
    punctuation = torch.tensor([[False, False, True], [False, False, False]])
    assert attachment_counts(heads, gold, punctuation) == {
        "words": 5, "right": 3, "unpunctuated_words": 4, "unpunctuated_right": 3,
    }


def test_graph_counts_and_f1():
    gold = torch.tensor([[[-1, 0, -1], [-1, -1, 2], [-1, 1, -1]]])
    chosen = torch.tensor([[[-1, 0, 0], [-1, -1, 1], [-1, -1, -1]]])
    counts = graph_counts(chosen, gold)
    assert counts == {"predicted": 3, "gold": 3, "unlabeled": 2, "labeled": 1}
    assert f1(counts["labeled"], 3, 3) == pytest.approx(100 / 3)
    assert f1(0, 0, 0) == 100 and f1(0, 0, 5) == 0 and f1(2, 2, 6) == 50
    assert share(1, 4) == 25 and share(0, 0) == 0


def test_kinds_of_change():
    before, after = (0, 1, 1, 3, 3), (0, 3, 2, 3, 1)
    arcs = [(3, 2), (3, 2), (5, 3)]
    # word 2: its new head 3 is its head in the graph; word 3: 2 is its dependent; word 5: 3 was its dependent
    assert kinds_of_change(before, after, arcs) == {
        "changes": 3, "to_head": 1, "to_dependent": 1, "from_dependent": 1, "other": 0,
    }
    assert kinds_of_change((2, 0), (0, 1), [])["other"] == 2
