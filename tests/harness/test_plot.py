"""Drawings: what is drawn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from seqstruct.cli import main
from seqstruct.harness import plot
from seqstruct.harness.logs import parameters, parse_line, parse_lines
from seqstruct.harness.records import append_records

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
        record(row=row, seed=seed, series={"axis": "length", "points": [[40, value], [42, 2 * value]]})
        for row, seed, value in (("Tf", 1, 0.5), ("Tf", 2, 1.5), ("Tf+Nd", 1, 0.25))
    ]
    (axes,) = plot.length_curves(records).axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()}
    assert drawn["Tf"] == [[40, 1.0], [42, 2.0]] and drawn["Tf+Nd"] == [[40, 0.25], [42, 0.5]]
    assert axes.get_xlabel() == "length"


def test_length_curves_of_no_or_several_metrics_are_refused(record, tmp_path, capsys):
    with pytest.raises(ValueError, match="got 0: none"):
        plot.length_curves([record()])
    series = {"axis": "length", "points": [[40, 0.5]]}
    append_records(tmp_path, [record(metric=metric, series=series) for metric in ("first", "second")])
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
