"""Stacks of a run, and their drawing."""

from __future__ import annotations

import numpy as np
import pytest

from seqstruct.ops.pushdown import Run, Transition
from seqstruct.plots.figures import save
from seqstruct.plots.stack_runs import stack_runs, stacks_of
from seqstruct.plots.views import LayerView


def transition(step, action, symbol, vector, height):
    return Transition(step, action, 0, 0, 1, symbol, height, vector, 0.0)


def test_stacks_of_a_run_and_their_drawing(tmp_path):
    run = Run((
        transition(0, "replace", 2, -1, 1), transition(1, "push", 1, 1, 2), transition(2, "push", 0, 2, 3),
        transition(3, "replace", 1, 2, 3), transition(4, "pop", 1, 1, 2),
    ), -1.0, -0.5)
    stacks = stacks_of(run)
    assert stacks == [[(2, -1)], [(2, -1), (1, 1)], [(2, -1), (1, 1), (0, 2)], [(2, -1), (1, 1), (1, 2)],
                      [(2, -1), (1, 1)]]
    symbols = ["<s>", "a", "b", "c", "d"]
    figure = stack_runs([LayerView("layer 1", symbols, symbols, None, None, run)])
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["\u22a5", "\u22a5", "a", "\u22a5", "a", "b", "\u22a5", "a", "b",
                                                        "\u22a5", "a"]
    assert [label.get_text().split("\n")[1] for label in axes.get_xticklabels()] == ["=", "+", "+", "=", "\u2212"]
    assert "0.61 of the weight" in axes.get_title(loc="left")
    save(figure, tmp_path / "run.svg")
    with pytest.raises(ValueError, match="no layer has a nondeterministic stack"):
        stack_runs([LayerView("layer 1", symbols, symbols, None, np.ones((1, 5, 5)))])
