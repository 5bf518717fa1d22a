"""The drawings of the thesis's figures: means over seeds in the order of the table, and what is missing is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqstruct.cli import main
from seqstruct.harness.records import Record, append_records
from seqstruct.plots.efficient import draw, series, transfer


def record(table: str, row: str, metric: str, seed: int, points: list[list[float]], value: float = 1.0) -> Record:
    split = {"axis": "length", "points": points} if points else {}
    return Record(
        paper="peng_thesis", table=table, row=row, metrics={metric: {"value": value, "unit": "x", **split}}, seed=seed,
        scale="small",
        dataset="none", configuration_hash="0" * 16, data_checksums={}, parameters=None, seconds=0.0, peak_memory=0,
        versions={}, command="none",
    )


def test_figures_are_drawn_from_records(tmp_path: Path) -> None:
    found = [
        record("figure-5.1", row, metric, seed, [[32, 10.0 * seed], [64, 20.0]])
        for row in ("T2R", "softmax") for metric in ("decoding_speed", "state_memory") for seed in (1, 2)
    ]
    found += [record("figure-4.4", "RFA", "training_loss", 1, [[25, 9.0], [50, 8.0]]),
              record("figure-4.4", "softmax", "training_loss", 1, [], 7.5)]
    append_records(tmp_path / "records", found)
    for name in ("figure-5.1", "figure-4.4"):
        out = tmp_path / f"{name}.png"
        assert main(["plot", "efficient", name, "--records", str(tmp_path / "records"), "--out", str(out)]) in (0, None)
        assert out.stat().st_size > 1000
    assert series(found, "decoding_speed") == {row: {32: 15.0, 64: 20.0} for row in ("T2R", "softmax")}
    assert len([axes for axes in draw("figure-5.1", found[:8]).axes if axes.lines]) == 2
    (axes,) = transfer(found[-2:], "title").axes
    labels = [line.get_label() for line in axes.lines]
    assert labels == ["RFA", "softmax, trained"] and list(axes.lines[1].get_ydata()) == [7.5, 7.5]


def test_a_row_has_one_colour_and_its_name_whatever_panels_lack_it() -> None:
    found = [record("figure-5.1", row, metric, 1, [[32, 1.0], [64, 2.0]]) for row, metric in (
        ("softmax", "decoding_speed"), ("T2R", "decoding_speed"), ("T2R", "state_memory"))]
    figure = draw("figure-5.1", found)
    colours = [[line.get_color() for line in axes.get_lines()] for axes in figure.axes]
    assert colours == [["C0", "C1"], ["C1"]]
    (legend,) = figure.legends
    shown = {text.get_text(): line.get_color()
             for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)}
    assert shown == {"softmax": "C0", "T2R": "C1"}


def test_no_records_are_an_error_of_one_sentence() -> None:
    with pytest.raises(ValueError, match="no records of figure-4.4 at this scale; its script"):
        draw("figure-4.4", [])
    for name in ("figure-4.4", "figure-5.1"):
        with pytest.raises(ValueError, match=f"no records of {name} at this scale; its script"):
            draw(name, [record(name, "softmax", "memory_share", 1, [])])
