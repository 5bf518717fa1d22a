"""A bAbI task's folder: the split of stories, the vocabulary, the script and its errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqstruct.cli import main
from seqstruct.data.aligned import read_checksums
from seqstruct.data.babi.folder import split_stories, write_folder
from seqstruct.data.babi.stories import TASKS, read_questions
from seqstruct.data.files import sha256
from tests.data.babi.stories_text import OTHER, STORY

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "data-prep" / "babi.sh"


@pytest.fixture
def official(tmp_path):
    folder = tmp_path / "official"
    folder.mkdir()
    (folder / f"qa19_{TASKS[19]}_train.txt").write_text((STORY + OTHER) * 10, encoding="utf-8")
    (folder / f"qa19_{TASKS[19]}_test.txt").write_text(OTHER.replace("green", "blue"), encoding="utf-8")
    return folder


def test_whole_stories_are_held_out_and_nothing_is_lost(official):
    path = official / f"qa19_{TASKS[19]}_train.txt"
    train, valid = split_stories(path, 0.1, seed=3)
    assert split_stories(path, 0.1, seed=3) == (train, valid)
    assert 3 <= sum("\t" in line for line in valid) <= 4
    assert sorted(train + valid) == sorted(path.read_text().splitlines())
    for part in (train, valid):
        assert part[0].startswith("1 ")
    with pytest.raises(ValueError, match="too few questions"):
        split_stories(path, 1.0, seed=3)


def test_the_folder_has_the_vocabulary_of_all_files(official, tmp_path):
    counts = write_folder(official, 19, tmp_path / "out")
    assert counts["train"] + counts["valid"] == 30 and counts["test"] == 1
    words = (tmp_path / "out" / "vocabulary.txt").read_text().splitlines()
    assert {"n,w", "blue", "bathroom"} <= set(words)
    assert len(read_questions(tmp_path / "out" / "train.txt")) == counts["train"]
    with pytest.raises(ValueError, match="exists and is not empty"):
        write_folder(official, 19, tmp_path / "out")


def test_altered_files_are_refused(official, tmp_path):
    names = [f"qa19_{TASKS[19]}_{split}.txt" for split in ("train", "test")]
    sums = {name: sha256(official / name) for name in names}
    write_folder(official, 19, tmp_path / "out", checksums=sums)
    with pytest.raises(ValueError, match="truncated or altered"):
        write_folder(official, 19, tmp_path / "new", checksums={**sums, names[1]: "0" * 64})
    with pytest.raises(ValueError, match="no checksum is known"):
        write_folder(official, 19, tmp_path / "new", checksums={})
    assert not (tmp_path / "new").exists()


def test_the_command_says_one_sentence(official, tmp_path, capsys):
    assert main(["prepare", "babi", "--from", str(official), "--task", "3", "--out", str(tmp_path / "out")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def run_script(*arguments):
    environment = {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    return subprocess.run(["bash", SCRIPT, *arguments], capture_output=True, text=True, env=environment)


def test_the_script_makes_the_folder(official, tmp_path):
    done = run_script("--task", "19", "--from", official, "--unchecked", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "test.txt", "train.txt", "valid.txt", "vocabulary.txt",
    ]


@pytest.mark.parametrize(("arguments", "message"), [
    (["--task", "19", "--from", "{official}"], "truncated or altered"),
    (["--task", "25", "--from", "{official}"], "expected a task from 1 to 20, got 25"),
    (["--from", "{official}"], "--task N is needed"),
    (["--task", "2", "--from", "absent"], "absent is not a folder"),
    (["--task", "2", "--unchecked"], "--unchecked needs --from"),
    (["--tsk", "2"], "unknown option --tsk"),
    (["--task"], "--task needs a value"),
])
def test_the_script_refuses_in_one_sentence(official, tmp_path, arguments, message):
    done = run_script("--out", tmp_path / "out", *[word.format(official=official) for word in arguments])
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1 and message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["official"]


def test_the_files_on_disk_are_the_official_ones(reference):
    sums = read_checksums(ROOT / "data-prep" / "babi.sha256")
    assert len(sums) == 40
    for name, expected in sums.items():
        assert sha256(reference / "data" / "babi" / name) == expected
