"""What updates cost, read off a training's log."""

from __future__ import annotations

import json

import pytest

from seqstruct.benchmarks import training


def test_cost_of_updates_without_the_first_line():
    entries = [{"ups": 1.0, "bsz": 99.0}, {"ups": 4.0, "bsz": 10.0}, {"ups": 2.0, "bsz": 20.0}]
    lines = [f"t | INFO | train_inner | {json.dumps({n: str(v) for n, v in entry.items()})}" for entry in entries]
    found = {m.metric: m.value for m in training.cost(lines, 10_000, 3_000_000)}
    assert found == {
        "examples_per_second": pytest.approx(30 / 0.75), "minutes_per_epoch": pytest.approx(10_000 / 40 / 60),
        "resident_memory": 3.0,
    }
    gpu = ["total memory = 2.000 GB", *lines, lines[-1].replace("{", '{"gb_free": "1.5", ')]
    assert {m.metric: m.value for m in training.cost(gpu, 10_000, 0)}["gpu_memory"] == pytest.approx(2**29 / 1e6)
    with pytest.raises(ValueError, match="statistics of 50 updates or more"):
        training.cost(lines[:1], 10_000, 0)
    with pytest.raises(ValueError, match="updates of less than 200 seconds"):
        training.cost([*lines, lines[-1].replace('"2.0"', '"0"')], 10_000, 0)


def test_a_training_that_fails_is_said_in_a_sentence(tmp_path, capsys):
    words = ["--updates", "50", "--epoch", "9", "--out", str(tmp_path / "cost.json"), "--", "--config-dir", "nowhere"]
    assert training.main(words) == 1
    assert "ended with status" in capsys.readouterr().err and not (tmp_path / "cost.json").exists()
