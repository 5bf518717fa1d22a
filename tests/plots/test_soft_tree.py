"""The soft tree's shares and its drawing."""

from __future__ import annotations

import numpy as np
import pytest

from seqstruct.plots.soft_tree import shares, soft_tree, soft_tree_gates
from tests.golden.checkpoints.make import FOLDER


def gates(length: int) -> list[np.ndarray]:
    generator = np.random.default_rng(4)
    drawn = [generator.random((length - level, 3)) for level in range(1, length)]
    return [level / level.sum(1, keepdims=True) for level in drawn]


def test_all_of_the_top_is_made_somewhere():
    for length in (1, 2, 7):
        _, made = shares(gates(length))
        assert sum(map(sum, made)) == pytest.approx(1.0)
        assert [len(row) for row in made] == list(range(length, 0, -1))


def test_a_node_that_only_hands_on_its_left():
    through, made = shares([np.array([[0.0, 1.0, 0.0]] * (4 - level)) for level in range(1, 4)])
    assert made == [[1.0, 0.0, 0.0, 0.0], [0.0] * 3, [0.0] * 2, [0.0]]
    assert [row[0] for row in through] == [1.0] * 4


def test_the_drawing_has_a_word_for_each_leaf():
    figure = soft_tree(["a", "b", "c", "</s>"], gates(4))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c", "</s>"]
    assert len(axes.collections[0].get_offsets()) == 10


@pytest.mark.parametrize("name", ["lm_softmax", "mt_shared"])
def test_a_model_without_a_tree_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}.pt: expected a model with --encoder gated_convolution"):
        soft_tree_gates(FOLDER / f"{name}.pt", "a b", data=FOLDER / "data" / "text")
