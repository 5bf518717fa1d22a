"""Words of the data in drawings: dollars among them are no formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.text import Text

from seqstruct.ops.automata import pattern_automaton
from seqstruct.ops.pushdown import Run, Transition
from seqstruct.ops.semiring import RealSemiring
from seqstruct.plots.attention import attention
from seqstruct.plots.automaton import automaton_figure
from seqstruct.plots.curves import learning_curves
from seqstruct.plots.dependencies import dependencies
from seqstruct.plots.figures import save
from seqstruct.plots.soft_tree import soft_tree
from seqstruct.plots.stack_runs import stack_runs
from seqstruct.plots.views import LayerView

WORD = "$x_{$"


def _curves(folder):
    log = folder / "train.log"
    log.write_text('2026-01-01 00:00:00 | INFO | valid | {"epoch": 1, "valid_loss": "2.5"}\n')
    return learning_curves({WORD: log}, "loss")


def _run():
    pushed = Transition(0, "push", 0, 0, 0, 0, 2, 0, 0.0)
    return stack_runs([LayerView("layer 1", [WORD], [WORD], None, None, Run((pushed,), 0.0, 0.0))])


@pytest.mark.parametrize("draw", [
    _curves,
    lambda _: attention([LayerView("layer 1", [WORD], [WORD], None, np.ones((1, 1, 1)))]),
    lambda _: _run(),
    lambda _: soft_tree([WORD, "</s>"], [np.array([[0.2, 0.3, 0.5]])]),
    lambda _: dependencies([WORD, "b"], {WORD: [0, 1]}, [(1, 2, WORD)]),
    lambda _: automaton_figure(
        pattern_automaton([torch.ones(1)], [torch.ones(1) / 2], RealSemiring()), [WORD]
    ),
], ids=["curves", "attention", "run", "soft tree", "dependencies", "automaton"])
def test_words_with_dollars_are_drawn_as_they_are(draw, tmp_path):
    figure = draw(tmp_path)
    save(figure, tmp_path / "drawn.svg")
    shown = [text._preprocess_math(text.get_text()) for text in figure.findobj(Text)]
    assert any(WORD in text and not formula for text, formula in shown)
