"""The queue of cells: what a list means, what is done, what runs, and what is wrong with a list."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

import pytest

from seqstruct.harness.evidence import main, read_list
from seqstruct.harness.records import read_folder

FAKE = Path(__file__).with_name("fake_recipe.py")


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """A function that writes a list beside a recipe of a paper, in a repository's layout."""
    paper = tmp_path / "recipes" / "nmt_lectures"
    paper.mkdir(parents=True)
    shutil.copyfile(FAKE, paper / "fake_recipe.py")
    monkeypatch.chdir(tmp_path)
    # Python puts the folder of a recipe in front, where its neighbours are found
    monkeypatch.syspath_prepend(str(paper))

    def write(*lines: str) -> Path:
        path = tmp_path / "recipes" / "evidence.txt"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


SCRIPT = "recipes/nmt_lectures/fake_recipe.py"


def test_cells_come_in_the_order_of_the_list_and_once(listed):
    path = listed("# first", f"{SCRIPT} --row stack* --seeds 2", "", f"SWITCH=1 {SCRIPT} --row plain 'stack*'")
    owed = read_list(path)
    assert [(one.cell.row, one.cell.seed) for one in owed] == [
        ("stack + gate", 2), ("plain", 1), ("plain", 2), ("stack + gate", 1),
    ]  # fmt: skip
    assert [one.environment for one in owed] == [{}, *[{"SWITCH": "1"}] * 3]


def test_what_has_a_record_is_not_run_again(listed, capsys, tmp_path):
    path = listed(f"{SCRIPT} --row plain --seeds 1 2")
    assert main([str(path), "--jobs", "1"]) == 0
    folder = tmp_path / "recipes" / "nmt_lectures" / "records"
    records = read_folder(folder)
    assert sorted({r.seed for r in records}) == [1, 2]
    shutil.rmtree(tmp_path / "runs")
    assert main([str(path)]) == 0 and read_folder(folder) == records
    capsys.readouterr()
    assert main([str(path), "--status"]) == 0
    assert "2 done, 0 running, 0 left; about 0 minutes" in capsys.readouterr().out


def test_a_failure_ends_its_cell_alone(listed, capsys):
    path = listed(f"{SCRIPT} --row fail plain --seeds 1")
    assert main([str(path), "--jobs", "1"]) == 1
    printed = capsys.readouterr().out
    assert "failed  nmt_lectures 1.5  fail, seed 1" in printed and "done    nmt_lectures 1.5  plain, seed 1" in printed


def test_status_says_what_runs_and_what_is_left(listed, capsys):
    path = listed(f"{SCRIPT} --row plain --seeds 1 2")
    lock = read_list(path)[0].lock(Path("runs"))
    lock.parent.mkdir(parents=True)
    with open(lock, "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert main([str(path), "--status"]) == 0
    assert "0 done, 1 running, 1 left; about 3 minutes of one thread" in capsys.readouterr().out


@pytest.mark.parametrize("line, message", [
    ("recipes/nmt_lectures/none.py", "line 2"), (f"{SCRIPT} --row nothing", "no row matches 'nothing'"),
    (f"{SCRIPT} --scale huge", "argument --scale"), (f"{SCRIPT} --lr 1", "unknown words: --lr 1"),
    (f"{SCRIPT} --seeds x", "argument --seeds"),
])  # fmt: skip
def test_a_wrong_line_is_named(listed, capsys, line, message):
    assert main([str(listed("# comment", line))]) == 1
    error = capsys.readouterr().err
    assert "evidence.txt, line 2" in error and message in error


def test_the_list_of_the_repository_is_readable():
    path = Path(__file__).parents[2] / "recipes" / "evidence.txt"
    assert read_list(path)
