"""Trees of one sentence as arcs."""

import pytest
from matplotlib.patches import Arc

from seqstruct.data.parsing.folder import write_folder
from seqstruct.plots.dependencies import dependencies, name_of, trees_of_checkpoints
from tests.data.parsing.corpora import corpus


def test_arcs_that_differ_are_red():
    trees = {"one": [2, 0, 2], "other": [0, 1, 2]}
    figure = dependencies(["a", "b", "c"], trees, [(1, 3, "ARG1")])
    one, other, graph = figure.axes
    assert [len([p for p in axis.patches if isinstance(p, Arc)]) for axis in (one, other, graph)] == [2, 2, 1]
    assert {p.get_edgecolor()[:3] for p in one.patches} == {(0.0, 0.0, 0.0)}
    colours = [p.get_edgecolor()[:3] == (0.0, 0.0, 0.0) for p in other.patches if isinstance(p, Arc)]
    assert colours == [False, True]  # b from a is new, c from b is not
    assert "ARG1" in [text.get_text() for text in graph.texts]
    assert [label.get_text() for label in one.get_xticklabels()] == ["a", "b", "c"]


def test_names_are_those_of_the_runs(tmp_path):
    path = tmp_path / "SPIGOT-small" / "checkpoints" / "checkpoint_best.pt"
    assert name_of(path, {}) == "SPIGOT-small"
    assert name_of(path, {"SPIGOT-small": []}) == "SPIGOT-small (2)"


def test_refused(tmp_path):
    write_folder({"trees": corpus("trees"), "dm": corpus("graphs")}, tmp_path / "data")
    with pytest.raises(ValueError, match="expected a corpus of graphs, dm; got 'trees'"):
        trees_of_checkpoints([], tmp_path / "data", "trees", "valid", 1)
    with pytest.raises(ValueError, match="a sentence from 1 to 7, got 8"):
        trees_of_checkpoints([], tmp_path / "data", "dm", "valid", 8)
    words, trees, arcs = trees_of_checkpoints([], tmp_path / "data", "dm", "valid", 1)
    assert trees == {"annotated": trees["annotated"]} and len(trees["annotated"]) == len(words)
    assert all(head for head, _, _ in arcs)
