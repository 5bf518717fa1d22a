"""Drawings: what is drawn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from seqstruct.cli import main
from seqstruct.harness.logs import parameters, parse_line, parse_lines
from seqstruct.harness.records import append_records
from seqstruct.ops.pushdown.actions import expected_actions
from seqstruct.ops.pushdown.best_run import Run, Transition, most_probable_run
from seqstruct.plots import plot
from tests.models.building import cfl_dictionary, language_model, task_of

LOG = """\
2026-01-01 00:00:00 | INFO | fairseq_cli.train | num. shared model params: 43,109 (num. trained: 43,109)
2026-01-01 00:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "3.5", "lr": "0.1"}
2026-01-01 00:00:00 | INFO | valid | {"epoch": 1, "valid_loss": "2.5", "valid_difference": "0.25"}
2026-01-01 00:00:00 | INFO | train | {"epoch": 1, "train_loss": "3.25", "train_wall": "7"}
2026-01-01 00:00:00 | INFO | valid | {"epoch": 2, "valid_loss": "1.5", "valid_difference": "0.125"}
2026-01-01 00:00:00 | INFO | valid | {"epoch": 3, "valid_lo
"""


def test_logs_are_read_line_by_line():
    entries = parse_lines(LOG.splitlines())
    assert [(e.tag, e.statistics["epoch"]) for e in entries] == [
        ("train_inner", 1), ("valid", 1), ("train", 1), ("valid", 2)]
    assert entries[0].statistics == {"epoch": 1.0, "update": 0.5, "loss": 3.5, "lr": 0.1}
    assert parameters(LOG.splitlines()) == 43109
    assert parse_line("no statistics here") is None and parameters(["none"]) is None


def test_learning_curves_hold_the_validation_values(tmp_path):
    (tmp_path / "train.log").write_text(LOG)
    (axes,) = plot.learning_curves({"one": tmp_path / "train.log"}, "difference").axes
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == [[1.0, 0.25], [2.0, 0.125]]
    with pytest.raises(ValueError, match="no validation statistic 'bleu'; there are: difference, loss"):
        plot.learning_curves({"one": tmp_path / "train.log"}, "bleu")


def test_curves_are_written_whole_or_not_at_all(tmp_path, capsys):
    (tmp_path / "train.log").write_text(LOG)
    for ending in plot.FORMATS:
        assert main(["plot", "curves", str(tmp_path), "--out", str(tmp_path / f"curve{ending}")]) == 0
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert main(["plot", "curves", str(tmp_path), "--out", str(tmp_path / "curve.txt")]) == 1
    assert "expected a name that ends in .png, .pdf, .svg" in capsys.readouterr().err
    assert not (tmp_path / "curve.txt").exists()
    assert main(["plot", "curves", str(tmp_path / "absent"), "--out", str(tmp_path / "x.png")]) == 1


def test_length_curves_average_over_seeds(record):
    records = [
        record(row=row, seed=seed, axis="length", points=[[40, value], [42, 2 * value]])
        for row, seed, value in (("Tf", 1, 0.5), ("Tf", 2, 1.5), ("Tf+Nd", 1, 0.25))
    ]
    (axes,) = plot.length_curves(records).axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()}
    assert drawn["Tf"] == [[40, 1.0], [42, 2.0]] and drawn["Tf+Nd"] == [[40, 0.25], [42, 0.5]]
    assert axes.get_xlabel() == "length"


def test_length_panels_have_one_colour_for_each_model(record):
    records = [
        record(row=f"{language} {model}", axis="length", points=[[40, value]])
        for value, (language, model) in enumerate([("dyck", "Tf"), ("dyck", "Tf+Nd"), ("palindromes", "Tf+Nd")])
    ]
    figure = plot.length_panels(records)
    panels = {axes.get_title(): {line.get_label(): line for line in axes.get_lines()[:-1]} for axes in figure.axes}
    assert list(panels["dyck"]) == ["Tf", "Tf+Nd"] and list(panels["palindromes"]) == ["Tf+Nd"] and len(panels) == 2
    assert panels["dyck"]["Tf+Nd"].get_color() == panels["palindromes"]["Tf+Nd"].get_color()
    assert panels["dyck"]["Tf"].get_color() != panels["dyck"]["Tf+Nd"].get_color()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Tf", "Tf+Nd"]


def test_the_best_run_by_another_metric_is_drawn_alone(record):
    records = [
        record(seed=seed, metrics={
            metric: {"value": value, "unit": "nats", "axis": "length", "points": [[40, 10.0 * seed]]}
            for metric, value in (("test", test), ("valid", valid))
        })
        for seed, (test, valid) in enumerate([(0.1, 0.9), (0.2, 0.7), (0.3, 0.8)], 1)
    ]
    (axes,) = plot.length_curves(records, selection="valid").axes
    assert axes.get_lines()[0].get_xydata().tolist() == [[40, 20.0]]


def test_length_curves_of_no_or_several_metrics_are_refused(record, tmp_path, capsys):
    with pytest.raises(ValueError, match="got 0: none"):
        plot.length_curves([record()])
    split = {"value": 0.5, "unit": "nats", "axis": "length", "points": [[40, 0.5]]}
    append_records(tmp_path, [record(metrics={"first": split, "second": split})])
    command = ["plot", "lengths", "stack_attention", "figure-2", "--records", str(tmp_path), "--out",
               str(tmp_path / "x.png")]
    assert main(command) == 1
    assert "got 2: first, second" in capsys.readouterr().err
    assert main([*command, "--metric", "first"]) == 0 and (tmp_path / "x.png").exists()


def test_attention_draws_actions_and_weights(tmp_path):
    symbols = ["<s>", *"([])"]
    actions = np.full((5, 3), 1 / 3)
    weights = np.tril(np.ones((2, 5, 5))) / np.arange(1, 6)[:, None]
    figure = plot.attention([
        plot.LayerView("layer 1", symbols, symbols, None, weights),
        plot.LayerView("layer 2", symbols, symbols, actions, None),
    ])
    images = [axes.get_images()[0].get_array() for axes in figure.axes[:2]]
    assert np.allclose(images[0], weights.mean(0)) and np.allclose(images[1], actions.T)
    plot.save(figure, tmp_path / "attention.png")
    with pytest.raises(ValueError, match="no layer gives actions"):
        plot.attention([])


def transition(step, action, symbol, vector, height):
    return Transition(step, action, 0, 0, 1, symbol, height, vector, 0.0)


def test_stacks_of_a_run_and_their_drawing(tmp_path):
    run = Run((
        transition(0, "replace", 2, -1, 1), transition(1, "push", 1, 1, 2), transition(2, "push", 0, 2, 3),
        transition(3, "replace", 1, 2, 3), transition(4, "pop", 1, 1, 2),
    ), -1.0, -0.5)
    stacks = plot.stacks_of(run)
    assert stacks == [[(2, -1)], [(2, -1), (1, 1)], [(2, -1), (1, 1), (0, 2)], [(2, -1), (1, 1), (1, 2)],
                      [(2, -1), (1, 1)]]
    symbols = ["<s>", "a", "b", "c", "d"]
    figure = plot.stack_runs([plot.LayerView("layer 1", symbols, symbols, None, None, run)])
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["\u22a5", "\u22a5", "a", "\u22a5", "a", "b", "\u22a5", "a", "b",
                                                        "\u22a5", "a"]
    assert [label.get_text().split("\n")[1] for label in axes.get_xticklabels()] == ["=", "+", "+", "=", "\u2212"]
    assert "0.61 of the weight" in axes.get_title(loc="left")
    plot.save(figure, tmp_path / "run.svg")
    with pytest.raises(ValueError, match="no layer has a nondeterministic stack"):
        plot.stack_runs([plot.LayerView("layer 1", symbols, symbols, None, np.ones((1, 5, 5)))])


def test_a_nondeterministic_stack_is_seen_through_its_runs(monkeypatch):
    """Expected actions and the most probable run come from the log-weights that the layer computed for the string."""
    dictionary = cfl_dictionary("dyck")
    model = language_model("Tf_Nd", dictionary, 2)
    loaded = [model], None, task_of(dictionary)
    monkeypatch.setattr("fairseq.checkpoint_utils.load_model_ensemble_and_task", lambda *_, **__: loaded)
    seen = []
    mechanism = model.decoder.layers[2].self_attn.mechanism
    mechanism.transition_layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    views = plot.layer_views("checkpoint.pt", "( [ ] )")
    (view,) = [view for view in views if view.actions is not None]
    assert np.allclose(view.actions, expected_actions(seen[0], states=2, symbols=3)[0].numpy())
    assert view.run == most_probable_run(seen[0], states=2, symbols=3)[0]
    assert len(view.run.transitions) == len(view.rows) == 5
    assert all(other.run is None for other in views if other is not view)
    assert len(mechanism.transition_layer._forward_hooks) == 1, "only this test's own is left"
