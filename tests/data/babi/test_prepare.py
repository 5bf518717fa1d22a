"""A bAbI task's folder: the split of stories, the vocabulary, the script and its errors."""

from __future__ import annotations

import pytest

from seqstruct.cli import main
from seqstruct.data.babi.folder import split_stories, write_folder
from seqstruct.data.babi.stories import TASKS, read_questions
from tests.data.babi.stories_text import OTHER, STORY
from tests.data.scripts import pack_tar, run


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


def test_the_script_makes_the_folder(official, tmp_path):
    done = run("babi", "--task", "19", "--from", official, "--unchecked", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "test.txt", "train.txt", "valid.txt", "vocabulary.txt",
    ]


@pytest.mark.parametrize(("arguments", "message"), [
    (["--task", "19", "--from", "{official}"], "truncated or altered"),
    (["--task", "25", "--from", "{official}"], "expected a task from 1 to 20, got 25"),
    (["--task", "2", "--from", "{official}"], "missing, as files or in archives: en/qa2_two-supporting"),
])
def test_the_command_refuses_in_one_sentence(official, tmp_path, refused, arguments, message):
    words = [word.format(official=official) for word in arguments]
    assert message in refused("prepare", "babi", "--out", tmp_path / "out", *words)
    assert [path.name for path in tmp_path.iterdir()] == ["official"]


def test_the_english_version_is_taken_out_of_the_archive(official, tmp_path):
    names = [f"qa19_{TASKS[19]}_{split}.txt" for split in ("train", "test")]
    members = {f"tasks_1-20_v1-2/en-10k/{name}": "not this" for name in names}
    members |= {f"tasks_1-20_v1-2/en/{name}": (official / name).read_bytes() for name in names}
    pack_tar(tmp_path / "raw" / "babi.tar.gz", members)
    words = ["--task", "19", "--from", str(tmp_path / "raw"), "--unchecked", "--out", str(tmp_path / "out")]
    assert main(["prepare", "babi", *words]) == 0
    assert (tmp_path / "out" / "test.txt").read_bytes() == (official / names[1]).read_bytes()


def test_the_files_on_disk_are_the_official_ones(reference, tmp_path):
    for task in TASKS:
        write_folder(reference / "data" / "babi", task, tmp_path / str(task), checked=True)
