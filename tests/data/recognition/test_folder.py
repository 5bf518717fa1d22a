"""Folders of `seqstruct prepare flare`: what they hold, and that wrong requests and damaged files are refused."""

from __future__ import annotations

import json

import pytest

from seqstruct.cli import main
from seqstruct.data.recognition.folder import SPLITS, RecognitionRequest, read_meta, read_split, write_folder
from seqstruct.data.recognition.languages import LANGUAGES
from seqstruct.data.recognition.trivial import COUNTS, trivially_right
from seqstruct.scoring.named_baselines import measure

SMALL = {"train": 40, "valid": 13, "valid_long": 11, "test": 17, "lengths": (0, 9), "long_lengths": (3, 15),
         "test_lengths": (0, 33)}


def made(folder, language="parity", **changes):
    write_folder(RecognitionRequest(language, **{**SMALL, **changes}), folder)
    return read_meta(folder)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_written_is_read(tmp_path, language):
    request = RecognitionRequest(language, **SMALL)
    meta = made(tmp_path / "a", language)
    found = {split: read_split(tmp_path / "a", split, meta) for split in SPLITS}
    assert {split: len(examples) for split, examples in found.items()} == {split: SMALL[split] for split in SPLITS}
    for split, (low, high) in request.of_split.items():
        assert all(low <= len(e.string) <= high for e in found[split])
        assert [e.member for e in found[split]] == [LANGUAGES[language].accepts(e.string) for e in found[split]]
    words = [line.split()[0] for line in (tmp_path / "a" / "dict.txt").read_text("utf-8").splitlines()]
    assert "".join(words) == LANGUAGES[language].terminals


def test_a_seed_decides_all_and_a_split_no_other(tmp_path):
    made(tmp_path / "a"), made(tmp_path / "b", train=41), made(tmp_path / "c", seed=2)
    texts = {name: {split: (tmp_path / name / f"{split}.txt").read_text("utf-8") for split in SPLITS} for name in "abc"}
    assert {**texts["a"], "train": ""} == {**texts["b"], "train": ""}
    assert texts["b"]["train"].startswith(texts["a"]["train"])
    assert all(texts["a"][split] != texts["c"][split] for split in SPLITS)


def test_the_command(tmp_path, capsys):
    words = ["prepare", "flare", "dyck-2-3", "--train", "20", "--valid", "5", "--valid-long", "5", "--test", "5",
             "--lengths", "0:10", "--out", str(tmp_path / "dyck")]
    assert main(words) == 0
    assert "dyck-2-3, strings by split and length: 20 train (0 to 10)" in capsys.readouterr().out
    assert json.loads((tmp_path / "dyck" / "meta.json").read_text())["language"] == "dyck-2-3"


@pytest.mark.parametrize("words, told", [
    (["nothing"], "no language is called 'nothing'"), (["parity", "--train", "0"], "train is at least 1, not 0"),
    (["parity", "--valid-long", "-1"], "valid-long is at least 1"),
    (["dyck-2-3", "--lengths", "3:3"], "dyck-2-3 has no string of length 3"),
    (["even-pairs", "--lengths", "0:0"], "all are in even-pairs"),
    (["parity", "--test-lengths", "9:3"], "the smaller first; got 9:3"),
])
def test_wrong_requests_leave_nothing(tmp_path, capsys, words, told):
    assert main(["prepare", "flare", *words, "--out", str(tmp_path / "out")]) != 0
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_damaged_folders(tmp_path):
    meta = made(tmp_path / "a")
    with pytest.raises(ValueError, match="no split 'dev'; there are: train, valid, valid_long, test"):
        read_split(tmp_path / "a", "dev", meta)
    path = tmp_path / "a" / "valid.txt"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match="valid.txt: SHA-256 .* truncated or altered"):
        read_split(tmp_path / "a", "valid", meta)
    with pytest.raises(ValueError, match="`seqstruct prepare flare` makes such a folder"):
        read_meta(tmp_path)


@pytest.mark.parametrize("line", ["1 0 2", "2 0 1", ""])
def test_wrong_lines(tmp_path, line, monkeypatch):
    meta = made(tmp_path / "a")
    path = tmp_path / "a" / "valid.txt"
    path.write_text(f"0 1 1\n{line}\n", "utf-8")
    monkeypatch.setattr("seqstruct.data.checked.verify", lambda *_: None)
    with pytest.raises(ValueError, match="valid.txt, line 2: expected 0 or 1 and symbols of 0 1, got"):
        read_split(tmp_path / "a", "valid", meta)


def test_the_baseline_is_the_best_rule(tmp_path):
    meta = made(tmp_path / "a", "repeat-01", train=400, valid=150)
    train, valid, longer, test = (read_split(tmp_path / "a", split, meta) for split in SPLITS)
    assert measure("trivial rule", tmp_path / "a") == measure("simple rule", tmp_path / "a")
    found = {m.metric: m.value for m in measure("simple rule", tmp_path / "a")}
    for name, examples in (("validation", valid), ("long_validation", longer), ("test", test)):
        shares = [sum(row) / len(examples) for row in trivially_right(train, examples).tolist()]
        assert found[f"{name}_accuracy"] == pytest.approx(100 * max(shares))
    counted = {m.metric: m.value for m in measure("counting rule", tmp_path / "a")}
    assert counted["test_accuracy"] == 100 * trivially_right(train, test, COUNTS).mean(1).max()
    assert found["validation_accuracy"] > 65  # strings that begin with 1 or are odd are none
