"""The folder: splits, what is asked beyond training, what simple rules reach by hand, and files that were altered."""

from __future__ import annotations

import json
import random

import pytest

from seqstruct.data.abilities.ability import Tagged
from seqstruct.data.abilities.chart import CHART
from seqstruct.data.abilities.folder import SPLITS, WHOLE, best_rule, read_meta, read_split, tasks_of
from seqstruct.data.abilities.rules import rules_of, shares
from seqstruct.data.abilities.tasks import make
from seqstruct.data.files import sha256
from seqstruct.scoring.named_baselines import measure
from tests.data.abilities.solvers import SOLVERS
from tests.data.scripts import prepare, prepared

SMALL = ("--train", 40, "--valid", 11, "--test", 13)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("abilities") / "s3"
    prepared("abilities", "--task", "s3", *SMALL, "--lengths", "5:9", "--long-lengths", "12:13", "--out", out)
    return out


def test_splits_have_the_sequences_asked_for(folder):
    meta = read_meta(folder)
    splits = {split: read_split(folder, split, meta) for split in SPLITS}
    assert {split: len(found) for split, found in splits.items()} == {
        "train": 40, "valid": 11, "test": 13, "test_long": 13}
    for split, found in splits.items():
        for example in found:
            solved, long = SOLVERS["s3"](example.symbols), split == "test_long"
            assert len(example.symbols) in (range(12, 14) if long else range(5, 10))
            assert example.targets == [None] * 9 * long + solved[9 * long :], "beyond training alone"
    trained = {tuple(example.symbols) for example in splits["train"]}
    assert not trained & {tuple(e.symbols) for split in ("valid", "test") for e in splits[split]}
    assert meta["axis"] == "position" and meta["options"] == {"group": "s3", "generators": False}


def test_one_seed_makes_one_folder(tmp_path, folder):
    again = [*SMALL, "--lengths", "5:9", "--long-lengths", "12:13", "--task", "s3"]
    meta = prepared("abilities", *again, "--out", tmp_path / "same")
    assert meta["sha256"] == read_meta(folder)["sha256"]
    other = prepared("abilities", *again, "--seed", 2, "--out", tmp_path / "other")
    assert other["sha256"]["train.txt"] != meta["sha256"]["train.txt"]


def test_the_baseline_is_the_rule_best_on_validation(folder):
    meta = read_meta(folder)
    reached = meta["rules"][best_rule(meta)]
    found = {(m.table, m.metric): m.value for m in measure("simple rule", folder)}
    assert [found[table, "s3_long"] for table in ("", WHOLE)] == list(reached["test_long"])
    assert measure("trivial rule", folder) == measure("simple rule", folder)
    with pytest.raises(ValueError, match="expected a folder of tasks"):
        measure("simple rule", folder.parent / "none")


def test_all_tasks_of_the_chart_are_made_at_once(tmp_path):
    assert prepare("abilities-chart", "--train", 5, "--valid", 3, "--test", 3, "--out", tmp_path / "chart") == 0
    found = tasks_of(tmp_path / "chart")
    assert set(found) == set(CHART) and tasks_of(found["dyck"]) == {"dyck": found["dyck"]}
    for task, place in found.items():
        meta = read_meta(place)
        assert meta["task"] == task and best_rule(meta) in meta["rules"]
    with pytest.raises(ValueError, match="expected a folder of chess"):
        tasks_of(tmp_path / "chart", ["parity", "chess"])
    with pytest.raises(ValueError, match="expected a folder of tasks"):
        tasks_of(tmp_path)


def example(text):
    """Symbols, an answer after a slash."""
    pairs = [word.partition("/") for word in text.split()]
    return Tagged([a for a, _, _ in pairs], [b or None for _, _, b in pairs], [0] * len(pairs))


def test_rules_by_hand():
    train = [example("a b/x c/y"), example("b b/x c/x"), example("a c/z c/y")]
    test = [example("a b/x c/x"), example("b c/y d/x")]
    reached = {name: shares(contexts, train, {"t": test})["t"] for name, contexts in rules_of(make("s3", {})).items()}
    assert reached["majority"] == (75.0, 50.0), "x, of three"
    assert reached["first symbol"] == (25.0, 0.0), "a: y, of two; b: x"
    assert reached["last symbol"] == (75.0, 50.0), "b: x; c: y, of two; d: the majority"
    assert reached["last two"] == (75.0, 50.0), "a b: x; b c: y, first of equals; b c; c d: the majority"
    assert reached["last three"] == (75.0, 50.0), "a b: x; a b c: y; b c: y; b c d: the majority"


def test_clues_of_tasks_by_hand():
    assert make("undo", {}).clues(["read", "+1", "~2", "undo", "+0", "read"]) == [None, "+1", "+1", "+1", "+0", "+0"]
    tokens = "[MAX 1 [SM 2 3 ] 4 ]".split()
    assert make("listops", {}).clues(tokens) == [None] * 5 + ["[SM", None, "[MAX"]
    assert "operator" in rules_of(make("listops", {})) and "last writing" in rules_of(make("undo", {}))


def test_the_operator_rule_has_what_its_counts_give():
    """Of formulas of one operator the rule is the best answer that knows the operator alone."""
    ability, generator, drawn = make("listops", {"depth": 2, "max_args": 2}), random.Random(1), []
    while len(drawn) < 3000:
        found = ability.draw((4, 4), generator)
        drawn += [found] if found else []
    reached, _ = shares(rules_of(ability)["operator"], drawn, {"t": drawn})["t"]
    assert reached == pytest.approx(100 * (0.19 + 0.19 + 0.1 + 0.1) / 4, abs=3), "9, 0, and one value in ten"


@pytest.mark.parametrize("words, told", [
    (("--task", "s3", "--pairs", "1:2"), "s3 has no option --pairs"),
    (("--task", "chess"), "no task is called 'chess'"),
    (("--task", "parity", "--lengths", "5:9", "--long-lengths", "9:12"), "--long-lengths: expected more than"),
    (("--task", "parity", "--lengths", "3:3", "--train", "9", "--valid", "20"), "brought no new sequence"),
    (("--task", "parity", "--train", "0"), "train is at least 1"),
])
def test_requests_that_cannot_be_met_leave_nothing(words, told, tmp_path, refused, monkeypatch):
    monkeypatch.setattr("seqstruct.data.abilities.folder.MOST_DRAWS", 500)
    assert told in refused("prepare", "abilities", *words, "--out", tmp_path / "x") and list(tmp_path.iterdir()) == []


def test_altered_files_are_refused(folder, tmp_path):
    for name in ("meta.json", "dict.txt", "train.txt", "test_long.txt"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    meta = read_meta(tmp_path)
    with pytest.raises(ValueError, match="has no split 'dev'"):
        read_split(tmp_path, "dev", meta)
    path = tmp_path / "train.txt"
    for line in ("a b\ta\t1 1", "a b\t- -\t- -", "a b"):
        path.write_text(f"{line}\n")
        with pytest.raises(ValueError, match="truncated or altered"):
            read_split(tmp_path, "train", meta)
        new = {**meta, "sha256": {**meta["sha256"], "train.txt": sha256(path)}}
        with pytest.raises(ValueError, match=r"line 1: expected symbols, targets and levels"):
            read_split(tmp_path, "train", new)
    (tmp_path / "meta.json").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"meta\.json: truncated or altered: 'utf-8'"):
        read_meta(tmp_path)
    (tmp_path / "meta.json").write_text(json.dumps({**meta, "task": "chess"}))
    with pytest.raises(ValueError, match="no task is called"):
        read_meta(tmp_path)
