"""The drawings of the thesis's figures: means over seeds in the order of the table, and what is missing is said."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from seqstruct.harness.records import Record, append_records

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "peng_thesis" / "figures.py"


@pytest.fixture(scope="module")
def figures():
    spec = spec_from_file_location("thesis_figures", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record(table: str, row: str, metric: str, seed: int, points: list[list[float]], value: float = 1.0) -> Record:
    split = {"axis": "length", "points": points} if points else {}
    return Record(
        paper="peng_thesis", table=table, row=row, metrics={metric: {"value": value, "unit": "x", **split}}, seed=seed,
        scale="small",
        dataset="none", configuration_hash="0" * 16, data_checksums={}, parameters=None, seconds=0.0, peak_memory=0,
        versions={}, command="none",
    )


def test_figures_are_drawn_from_records(figures, tmp_path: Path) -> None:
    found = [
        record("figure-5.1", row, metric, seed, [[32, 10.0 * seed], [64, 20.0]])
        for row in ("T2R", "softmax") for metric in ("decoding_speed", "state_memory") for seed in (1, 2)
    ]
    found += [record("figure-4.4", "RFA", "training_loss", 1, [[25, 9.0], [50, 8.0]]),
              record("figure-4.4", "softmax", "training_loss", 1, [], 7.5)]  # fmt: skip
    append_records(tmp_path / "records", found)
    paths = figures.draw(tmp_path / "records", "small", tmp_path)
    assert [path.name for path in paths] == ["figure-5.1.png", "figure-4.4.png"]
    assert all(path.stat().st_size > 1000 for path in paths)
    means = figures.series(found, "decoding_speed")
    assert means == {row: {32: 15.0, 64: 20.0} for row in ("T2R", "softmax")}
    figure = figures.transfer(found[-2:], "title")
    (axes,) = figure.axes
    labels = [line.get_label() for line in axes.lines]
    assert labels == ["RFA", "softmax, trained"] and list(axes.lines[1].get_ydata()) == [7.5, 7.5]


def test_no_records_are_an_error_of_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        [sys.executable, SCRIPT, "--records", tmp_path / "empty", "--out", tmp_path / "out"],
        capture_output=True, text=True, env={"PYTHONPATH": str(SCRIPT.parents[2])}, check=False,
    )
    assert done.returncode == 1
    assert "run decoding_curves.py and softmax_transfer.py first" in done.stderr and "Traceback" not in done.stderr
