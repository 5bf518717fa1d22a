"""Rates and seeds in one process: what validation chooses, what is recorded, what broke, and going on."""

from __future__ import annotations

import json
import threading

import pytest

from seqstruct.bridge.logs import LogEntry
from seqstruct.search.seeds import chosen, main, measurements, train_all
from tests.data.scripts import prepared


def training(calls, reached):
    """A stand-in: accuracy on validation by rate and seed; the test has one less, test_long two."""

    def train(words):
        given = dict(word.split("=", 1) for word in words)
        rate, seed = float(given["optimization.lr"].strip("[]")), int(given["common.seed"])
        assert given["dataset.valid_subset"] == '"valid,test,test_long"'
        calls.append((rate, seed))
        value = reached(rate, seed)
        if isinstance(value, Exception):
            raise value
        return [
            LogEntry(split, {
                "epoch": 2.0, f"{split}_accuracy": value - i, f"{split}_sequence_accuracy": value - 10 - i,
                f"{split}_loss": 1 / value, f"{split}_accuracy_3": value, f"{split}_accuracy_5": value + 1,
            })
            for i, split in enumerate(("valid", "test", "test_long"))
        ]

    return train


def test_the_best_rate_is_taken_for_the_other_seeds(tmp_path):
    calls, path = [], tmp_path / "parity.json"
    found = train_all(training(calls, lambda rate, seed: 60 + 1000 * rate - seed), [0.01, 0.02, 0.005], [1, 2, 3], path)
    assert calls == [(0.01, 1), (0.02, 1), (0.005, 1), (0.02, 2), (0.02, 3)] and json.loads(path.read_text()) == found
    got = {(m.table, m.metric): m for m in measurements("parity", "position", found, 1)}
    accuracy = got["", "parity"]
    assert accuracy.value == 77 and accuracy.axis == "seed" and accuracy.points == [(1, 78), (2, 77), (3, 76)]
    assert got["", "parity_long"].value == 76 and got["", "validation_parity"].value == 78
    assert got["abilities-sequences", "parity"].value == 67
    levels = got["abilities-levels", "parity_long"]
    assert levels.axis == "position" and levels.points == [(3, 78), (5, 79)] and levels.value == 76
    assert got["", "chosen_parity_rate"].value == 0.02 and got["", "search_parity"].value == 79
    assert got["", "search_parity"].points == [(0.01, 69), (0.02, 79), (0.005, 64)]
    assert ("", "parity_broken") not in got


def test_an_interrupted_call_goes_on(tmp_path):
    calls, path = [], tmp_path / "x.json"

    def reached(rate, seed):
        if len(calls) == 3:
            raise KeyboardInterrupt
        return 50.0

    with pytest.raises(KeyboardInterrupt):
        train_all(training(calls, reached), [0.1, 0.2], [1, 2], path)
    train_all(training(calls, lambda rate, seed: 50.0), [0.1, 0.2], [1, 2], path)
    assert calls == [(0.1, 1), (0.2, 1), (0.1, 2), (0.1, 2)], "the first of equal rates"


def test_trainings_with_rates_and_seeds_that_are_not_asked_for_do_not_count(tmp_path):
    calls, path = [], tmp_path / "x.json"
    train = training(calls, lambda rate, seed: 60 + 100 * rate - seed)
    train_all(train, [0.1, 0.2], [1, 2, 3], path)
    found = train_all(train, [0.1], [1, 2], path)
    assert calls == [(0.1, 1), (0.2, 1), (0.2, 2), (0.2, 3), (0.1, 2)] and len(json.loads(path.read_text())) == 5
    got = {m.metric: m for m in measurements("x", "depth", found, 1) if not m.table}
    assert got["x"].points == [(1, 68), (2, 67)] and got["search_x"].points == [(0.1, 69)]


def test_trainings_of_another_machine_are_counted(tmp_path):
    path, train = tmp_path / "x.json", training([], lambda rate, seed: 50.0)
    train_all(train, [0.1], [1, 2], path, "a GPU")
    found = train_all(train, [0.1], [1, 2, 3], path, "a processor")
    got = {m.metric: m for m in measurements("x", "depth", found, 1, "a processor")}
    assert (got["x_elsewhere"].value, got["x_elsewhere"].unit) == (2, "a GPU")
    assert "x_elsewhere" not in {m.metric for m in measurements("x", "depth", found[:2], 1, "a GPU")}


def test_trainings_that_were_told_something_else_are_not_taken_over(tmp_path):
    calls, path = [], tmp_path / "x.json"
    train = training(calls, lambda rate, seed: 50.0)
    train_all(train, [0.1], [1], path, words=["row=lstm"])
    with pytest.raises(ValueError, match=r'x.json is of other trainings, of \["row=lstm"\]: expected \["row=gru"\]'):
        train_all(train, [0.1], [1], path, words=["row=gru"])
    (before,) = json.loads(path.read_text())
    del before["words"]  # as of a file that does not say
    path.write_text(json.dumps([before]))
    train_all(train, [0.1], [1], path, words=["row=gru"])
    assert calls == [(0.1, 1)]


def test_trainings_on_other_data_are_not_taken_over(tmp_path):
    calls, path = [], tmp_path / "x.json"
    train = training(calls, lambda rate, seed: 50.0)
    train_all(train, [0.1], [1], path, data="ab12")
    with pytest.raises(ValueError, match=r'x.json is of other trainings, of {"data": "ab12"}: expected {"data": "00"}'):
        train_all(train, [0.1], [1, 2], path, data="00")
    train_all(train, [0.1], [1, 2], path, data="ab12")
    assert calls == [(0.1, 1), (0.1, 2)]


def test_of_equal_accuracies_the_least_loss_counts():
    tried = [{"rate": r, "seed": 1, "valid": {"accuracy": 50.0, "loss": loss}} for r, loss in ((1, 3.0), (2, 2.0))]
    assert chosen(tried, 1) == 2 and chosen(tried, 2) is None
    lost = {**tried[1], "rate": 4, "valid": {**tried[1]["valid"], "loss": float("nan")}}
    assert chosen([lost, *tried], 1) == chosen([*tried, lost], 1) == 2, "a loss that is no number is the worst"


def test_what_broke_is_said(tmp_path):
    calls = []
    found = train_all(training(calls, lambda r, s: FloatingPointError("gradients are Nan\nmore")), [0.1, 0.2], [1, 2],
                      tmp_path / "x.json")
    assert calls == [(0.1, 1), (0.2, 1)], "no other seeds"
    (one,) = measurements("x", "depth", found, 1)
    assert (one.metric, one.value, one.unit) == ("x_broken", 2, "gradients are Nan")
    found = train_all(training([], lambda r, s: ValueError("too long") if r > 0.1 else 70.0), [0.1, 0.2], [1, 2],
                      tmp_path / "y.json")
    got = {m.metric: m for m in measurements("y", "depth", found, 1)}
    assert got["y"].value in (68, 69, 70) and got["y_broken"].unit == "too long"


@pytest.mark.training
def test_a_small_chart(tmp_path):
    """Two tasks by fairseq itself, of a few updates, after which no thread holds their data."""
    before = threading.active_count()
    prepared_all = ["--train", 160, "--valid", 5, "--test", 5, "--lengths", "8:12", "--long-lengths", "14:14"]
    for task in ("parity", "dyck"):
        prepared("abilities", "--task", task, *prepared_all, "--out", tmp_path / "data" / task)
    words = ["--config-dir", "configs/abilities", "--config-name", "train", tmp_path / "data", "row=recurrent",
             "scale=smoke", "--rates", "0.01", "--seeds", "2", "--out", tmp_path / "out"]
    assert main(list(map(str, words))) == 0 and threading.active_count() == before
    found = {(m["table"], m["metric"]): m for m in json.loads((tmp_path / "out" / "result.json").read_text())}
    assert {"parity", "parity_long", "dyck", "dyck_long", "chosen_dyck_rate"} <= {metric for _, metric in found}
    assert [seed for seed, _ in found["", "dyck"]["points"]] == [2] and 0 <= found["", "dyck"]["value"] <= 100
    assert found["abilities-levels", "dyck"]["axis"] == "depth" and found["abilities-levels", "parity"]["points"]
    log = (tmp_path / "out" / "train.log").read_text()
    assert log.count("num. shared model params") == 2 and '"train_wall"' in log
    wrong = [*words[:5], "--rates", "1", "--tasks", "chess", "--out", tmp_path / "no"]
    assert main(list(map(str, wrong))) == 1
    assert not (tmp_path / "no").exists()
