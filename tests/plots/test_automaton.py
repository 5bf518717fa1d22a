"""Automata of features: their scores are the layer's, the drawing shows the path that scores best."""

from __future__ import annotations

import pytest
import torch
from matplotlib.patches import FancyArrowPatch

from seqstruct.layers.rational import RationalLayer
from seqstruct.ops.automata import best_path, forward, pattern_automaton, rational_recurrence
from seqstruct.ops.semiring import RealSemiring
from seqstruct.plots.automaton import BEST, automaton_figure, feature_automaton
from seqstruct.plots.figures import save
from tests.randomised import randomised

T, C, D = 6, 5, 3
WORDS = "a b c d e f".split()


def random_layer(automaton, generator, output_gate=False):
    return randomised(RationalLayer(automaton, C, D, output_gate).double(), generator, 1.0)


@pytest.mark.parametrize("output_gate", [False, True])
@pytest.mark.parametrize("automaton", ["B", "B_max_plus", "C", "F"])
def test_scores_are_those_of_the_layer(automaton, output_gate, generator):
    """In the real semiring with inputs z made positive, since a drawing has magnitudes."""
    layer = random_layer(automaton, generator, output_gate)
    inputs = torch.randn(T, C, dtype=torch.double, generator=generator)
    with torch.no_grad():
        projected = layer.project(inputs)
        if automaton != "B_max_plus":
            patterns = layer.projections // 2
            projected[:, 1 : 2 * patterns : 2] = projected[:, 1 : 2 * patterns : 2].abs()
        scores = rational_recurrence(
            automaton, projected[None], final_logits=layer.final_logits, epsilon_logits=layer.epsilon_logits
        ).scores[0]
        for feature in range(D):
            found = forward(feature_automaton(layer, inputs, feature)).scores[1:]
            torch.testing.assert_close(found, scores[:, feature])


def test_the_path_is_drawn(generator, tmp_path):
    layer = random_layer("F", generator)
    inputs = torch.randn(T, C, dtype=torch.double, generator=generator)
    automaton = feature_automaton(layer, inputs, 1)
    (path,) = best_path(automaton)
    figure = automaton_figure(automaton, WORDS, "F")
    above, below = figure.axes
    drawn = [patch for patch in below.patches if isinstance(patch, FancyArrowPatch)]
    assert len(drawn) == len(path.arcs)
    assert {patch.get_edgecolor() for patch in drawn} == {drawn[0].get_edgecolor()}
    shown = [text.get_text() for text in below.texts]
    for (source, target, position), text in zip(path.arcs, shown, strict=True):
        weight = automaton.epsilon[source, target] if position is None else automaton.arcs[position, source, target]
        assert text.removeprefix("ε ") == f"{float(weight):.2f}"
    red = [p for p in above.patches if isinstance(p, FancyArrowPatch) and p.get_linewidth() == 2.0]
    assert len(red) == len({(i, j, position is None) for i, j, position in path.arcs}) and BEST
    assert [label.get_text() for label in below.get_xticklabels()] == WORDS
    assert f"{path.score:.3f}" in figure.get_suptitle()
    save(figure, tmp_path / "f.png")
    assert (tmp_path / "f.png").stat().st_size > 10_000


def test_wrong_input(generator):
    layer = random_layer("B", generator)
    inputs = torch.randn(T, C, dtype=torch.double, generator=generator)
    with pytest.raises(ValueError, match="feature 3 is out of range, expected 0 .. 2"):
        feature_automaton(layer, inputs, 3)
    automaton = feature_automaton(layer, inputs, 0)
    with pytest.raises(ValueError, match="2 words for 6 symbols"):
        automaton_figure(automaton, ["a", "b"])
    nothing = pattern_automaton([torch.zeros(2)], [0.5], RealSemiring())
    with pytest.raises(ValueError, match="no path derives the string"):
        automaton_figure(nothing, ["a", "b"])
    with pytest.raises(ValueError, match="a family"):
        automaton_figure(pattern_automaton([torch.ones(3, 2)], [0.5], RealSemiring()), ["a", "b"])
