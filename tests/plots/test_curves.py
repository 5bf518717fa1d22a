"""Curves: what is drawn, and what is refused."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from seqstruct.bridge.logs import parameters, parse_line, parse_lines
from seqstruct.cli import main
from seqstruct.harness.records import append_records
from seqstruct.plots import curves
from seqstruct.plots.figures import FORMATS

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
    (axes,) = curves.learning_curves({"one": tmp_path / "train.log"}, "difference").axes
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == [[1.0, 0.25], [2.0, 0.125]]
    with pytest.raises(ValueError, match="no validation statistic 'bleu'; there are: difference, loss"):
        curves.learning_curves({"one": tmp_path / "train.log"}, "bleu")


def test_a_validation_outside_of_training_has_no_epoch(tmp_path, refused):
    log = tmp_path / "validate.log"
    log.write_text('2026-11-22 17:14:55 | INFO | valid | {"valid_loss": "2.5", "valid_difference": "0.25"}\n')
    told = refused("plot", "curves", log, "--out", tmp_path / "one.png")
    assert "no validation statistic 'loss'; there are: none" in told
    log.write_text(LOG + log.read_text())
    (axes,) = curves.learning_curves({"one": log}, "loss").axes
    assert axes.get_lines()[0].get_xydata().tolist() == [[1.0, 2.5], [2.0, 1.5]]


VALIDATED = """\
2026-11-22 17:14:55 | INFO | test | {"test_loss": "31.6", "test_difference": "1.0", "test_difference_10": "9"}
2026-11-22 17:14:56 | INFO | test | {"test_difference": "1.0", "test_difference_12": "0.5", "test_difference_7": "0.25"}
"""


def test_curves_by_length_hold_what_was_validated_last(tmp_path, refused):
    log = tmp_path / "validate.log"
    log.write_text(VALIDATED)
    (tmp_path / "binary.pt").write_bytes(b"PK\x80\xff")
    (axes,) = curves.validated_lengths({"one": log}, "difference").axes
    assert axes.get_lines()[0].get_xydata().tolist() == [[7.0, 0.25], [12.0, 0.5]]
    assert main(["plot", "validated-lengths", str(log), "--out", str(tmp_path / "one.png")]) == 0
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    for options, message in (
        ([str(log), "--metric", "lower_bound"], "no 'lower_bound' by length; fairseq-validate with --report-by-length"),
        ([str(tmp_path / "binary.pt")], f"{tmp_path / 'binary.pt'}: not UTF-8 after line 0"),
        ([str(tmp_path / "none.log")], "none.log: No such file or directory"),
    ):
        assert message in refused("plot", "validated-lengths", *options, "--out", tmp_path / "two.png")
    assert not (tmp_path / "two.png").exists()


def test_curves_are_written_whole_or_not_at_all(tmp_path, capsys):
    (tmp_path / "train.log").write_text(LOG)
    for ending in FORMATS:
        assert main(["plot", "curves", str(tmp_path), "--out", str(tmp_path / f"curve{ending}")]) == 0
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert main(["plot", "curves", str(tmp_path), "--out", str(tmp_path / "curve.txt")]) == 1
    assert "expected a name that ends in .png, .pdf, .svg" in capsys.readouterr().err
    assert not (tmp_path / "curve.txt").exists()
    assert main(["plot", "curves", str(tmp_path / "absent"), "--out", str(tmp_path / "x.png")]) == 1
    assert f"by --log-file {tmp_path / 'absent' / 'train.log'}" in capsys.readouterr().err


def test_runs_of_one_name_have_a_curve_each(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(curves, "learning_curves", lambda logs, metric: drawn.append(logs) or Figure())
    for name in ("a/run", "b/run", "_c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "train.log").write_text(LOG)
    monkeypatch.chdir(tmp_path / "_c")
    runs = ["../a/run", "../b/run/train.log", "."]
    assert main(["plot", "curves", *runs, "--out", str(tmp_path / "x.png")]) == 0
    assert {name: str(path) for name, path in drawn[0].items()} == {
        "../a/run": "../a/run/train.log", "../b/run/train.log": "../b/run/train.log", "_c": "train.log"}


def test_a_name_with_a_line_in_front_is_in_the_legend(tmp_path):
    (tmp_path / "train.log").write_text(LOG)
    (axes,) = curves.learning_curves({"_a": tmp_path / "train.log", "b": tmp_path / "train.log"}, "loss").axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["_a", "b"]


def test_length_curves_average_over_seeds(record):
    records = [
        record(row=row, seed=seed, axis="length", points=[[40, value], [42, 2 * value]])
        for row, seed, value in (("Tf", 1, 0.5), ("Tf", 2, 1.5), ("Tf+Nd", 1, 0.25))
    ]
    (axes,) = curves.length_curves(records).axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()}
    assert drawn["Tf"] == [[40, 1.0], [42, 2.0]] and drawn["Tf+Nd"] == [[40, 0.25], [42, 0.5]]
    assert axes.get_xlabel() == "length"


def test_configurations_of_a_row_are_not_averaged(record):
    records = [
        record(seed=seed, configuration_hash=name, axis="length", points=[[40, value]], value=value)
        for seed, name, value in ((1, "ab", 8.0), (2, "ab", 0.25), (1, "cd", 0.5), (2, "cd", 1.5))
    ]
    for selection, drawn in ((None, 1.0), ("difference", 0.5)):
        more = [record(seed=r.seed, configuration_hash=r.configuration_hash, metric="of", axis="length", value=9.0,
                       points=r.points("difference")) for r in records]
        (axes,) = curves.length_curves([*records, *more], selection=selection, metric="of").axes
        assert axes.get_lines()[0].get_xydata().tolist() == [[40, drawn]]


def test_perplexities_are_drawn_on_a_logarithmic_axis(record):
    records = [record(unit=unit, axis="epoch", points=[[1, 50.0], [2, 5.0]]) for unit in ("perplexity", "bits")]
    for one, scale in zip(records, ("log", "linear"), strict=True):
        (axes,) = curves.length_curves([one]).axes
        assert axes.get_yscale() == scale and [line.get_label() for line in axes.get_lines()][0] == one.row
        if scale == "log":
            axes.figure.draw_without_rendering()
            told = {text.get_text() for text in axes.get_yticklabels(which="both")}
            assert {"10", "20", "30"} <= told and told.isdisjoint({"8", "9"}), "those before 10 would overlap with it"


def test_length_panels_have_one_colour_for_each_model(record):
    records = [
        record(row=f"{language} {model}", axis="length", points=[[40, value]])
        for value, (language, model) in enumerate([("dyck", "Tf"), ("dyck", "Tf+Nd"), ("palindromes", "Tf+Nd")])
    ]
    figure = curves.length_curves(records, panels=True)
    panels = {axes.get_title(): {line.get_label(): line for line in axes.get_lines()[:-1]} for axes in figure.axes}
    assert list(panels["dyck"]) == ["Tf", "Tf+Nd"] and list(panels["palindromes"]) == ["Tf+Nd"] and len(panels) == 2
    assert panels["dyck"]["Tf+Nd"].get_color() == panels["palindromes"]["Tf+Nd"].get_color()
    assert panels["dyck"]["Tf"].get_color() != panels["dyck"]["Tf+Nd"].get_color()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Tf", "Tf+Nd"]


def test_many_rows_are_told_apart_by_their_lines(record):
    points = {"loss": {"value": 1.0, "unit": "nats", "axis": "length", "points": [[1, 1.0], [2, 2.0]]}}
    records = [record(row=f"row {i}", metrics=points) for i in range(23)]
    (axes,) = curves.length_curves(records).axes
    rows = [line for line in axes.lines if line.get_label().startswith("row")]
    looks = {(to_rgba(line.get_color()), line.get_linestyle()) for line in rows}
    assert len(looks) == 23
    many = [record(row=f"row {i}", metrics=points) for i in range(41)]
    axes.figure.draw_without_rendering()
    label, legend = axes.yaxis.label.get_window_extent(), axes.figure.legends[0].get_window_extent()
    assert "loss" in axes.get_ylabel() and not label.overlaps(legend)
    assert curves.length_curves(many[:40])
    with pytest.raises(ValueError, match="expected at most 40 curves, which colours and dashes tell apart, got 41"):
        curves.length_curves(many)


def test_the_best_run_by_another_metric_is_drawn_alone(record):
    records = [
        record(seed=seed, metrics={
            metric: {"value": value, "unit": "nats", "axis": "length", "points": [[40, 10.0 * seed]]}
            for metric, value in (("test", test), ("valid", valid))
        })
        for seed, (test, valid) in enumerate([(0.1, 0.9), (0.2, 0.7), (0.3, 0.8)], 1)
    ]
    (axes,) = curves.length_curves(records, selection="valid").axes
    assert axes.get_lines()[0].get_xydata().tolist() == [[40, 20.0]]


def test_a_run_that_nothing_chooses_is_not_drawn(record):
    records = [record(row=row, seed=seed, axis="length", points=[[40, 1.0 * seed]])
               for row, seed in (("Tf", 1), ("Tf", 2), ("Tf+Nd", 1))]
    with pytest.raises(ValueError, match="Tf: expected records of vaild to choose a run by, got none"):
        curves.length_curves(records, selection="vaild")
    judged = [record(row="Tf+Nd", seed=1, metric="valid")]
    with pytest.raises(ValueError, match="Tf: expected records of valid"):
        curves.length_curves([*records, *judged], selection="valid")
    judged += [record(row="Tf", seed=2, metric="valid")]
    (axes,) = curves.length_curves([*records, *judged], selection="valid").axes
    assert [line.get_ydata().tolist() for line in axes.get_lines()[:2]] == [[2.0], [1.0]]


def test_length_curves_of_no_or_several_metrics_are_refused(record, tmp_path, refused):
    with pytest.raises(ValueError, match="got 0; there are: none"):
        curves.length_curves([record()])
    split = {"value": 0.5, "unit": "nats", "axis": "length", "points": [[40, 0.5]]}
    append_records(tmp_path, [record(metrics={"first": split, "second": split})])
    command = ["plot", "lengths", "stack_attention", "figure-2", "--records", str(tmp_path), "--out",
               str(tmp_path / "x.png")]
    assert "got 2; there are: first, second" in refused(*command)
    assert "got 0 of third; there are: first, second" in refused(*command, "--metric", "third")
    assert "got 0 of first; there are: none" in refused(*command, "--metric", "first", "--row", "no such", "row")
    assert main([*command, "--metric", "first", "--row", "no such", "*"]) == 0 and (tmp_path / "x.png").exists()
