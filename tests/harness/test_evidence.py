"""The queue of cells: what a list means, what is done, what runs, and what is wrong with a list."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from seqstruct.data.files import locked
from seqstruct.harness.evidence import main, read_list
from seqstruct.harness.records import append_records, read_folder
from seqstruct.harness.script import Script
from tests.harness.scripts import make_repository

SCRIPT = "recipes/nmt_lectures/fake.sh"
SLOW_GIT = """#!/usr/bin/env bash
[[ "$1" == add || "$1" == commit ]] || exec {git} "$@"
mkdir busy || {{ touch refused; exit 128; }}
sleep 0.2
{git} "$@"
status=$?
rmdir busy
exit "$status"
"""


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """A function that writes a list in a repository with one recipe, which is entered."""
    root = make_repository(tmp_path).parents[2]
    monkeypatch.chdir(root)
    monkeypatch.delenv("SEQSTRUCT_COMPILED", raising=False)
    monkeypatch.setenv("PATH", f"{root / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}")

    def write(*lines: str) -> Path:
        path = root / "recipes" / "evidence.txt"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def test_cells_come_in_the_order_of_the_list_and_once(listed):
    path = listed("# first", f"{SCRIPT} --row 'stack*' --seeds 2", "",
                  f"SEQSTRUCT_COMPILED=1 {SCRIPT} --row plain 'stack*'")
    plans = read_list(path)
    assert [(plan.cell.row, plan.cell.seed) for plan in plans] == [
        ("stack + gate", 2), ("plain", 1), ("plain", 2), ("stack + gate", 1)]
    assert [plan.compiled for plan in plans] == [None, True, True, True]
    assert plans[1].command.startswith("SEQSTRUCT_COMPILED=1 recipes/")


def test_what_has_a_record_is_not_run_again(listed, capsys):
    path = listed(f"{SCRIPT} --row plain copy --seeds 1")
    assert main([str(path), "--jobs", "1"]) == 0
    folder = path.parent / "nmt_lectures" / "records"
    records = read_folder(folder)
    assert {(r.row, r.seed) for r in records} == {("plain", 1), ("copy", 1)}
    shutil.rmtree("runs")
    assert main([str(path)]) == 0 and read_folder(folder) == records and not list(Path("runs").rglob("runs.txt"))
    capsys.readouterr()
    assert main([str(path), "--status"]) == 0
    assert "2 done, 0 running, 0 left; about 0 minutes" in capsys.readouterr().out


def test_a_record_that_names_no_machine_is_owed_anew(listed, capsys):
    path = listed(f"{SCRIPT} --row plain --seeds 1")
    assert main([str(path)]) == 0
    records = read_folder(folder := path.parent / "nmt_lectures" / "records")
    shutil.rmtree(folder)
    append_records(folder, [replace(record, machine={}) for record in records])
    capsys.readouterr()
    assert main([str(path), "--status"]) == 0
    assert "0 done, 0 running, 1 left" in capsys.readouterr().out
    assert main([str(path)]) == 1, "its folder says that it is finished"
    said = capsys.readouterr().err
    assert "failed  nmt_lectures" in said and "has no record of it" in said and "done  " not in said


def test_a_failure_ends_its_cell_alone(listed, capsys):
    path = listed(f"{SCRIPT} --row fail copy --seeds 1")
    assert main([str(path), "--jobs", "1"]) == 1
    printed = capsys.readouterr().err
    assert "failed  nmt_lectures 1.5-stand-in  fail, seed 1" in printed
    assert "done    nmt_lectures 1.5-stand-in  copy, seed 1" in printed


def test_cells_that_end_at_once_commit_one_after_the_other(listed, monkeypatch):
    """git, made slow, refuses what comes while it runs, as the real one does."""
    binary = Path("bin/git")
    binary.write_text(SLOW_GIT.format(git=shutil.which("git")))
    binary.chmod(0o755)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "somebody@example.org")
    git = partial(subprocess.check_output, text=True)
    git(["git", "init", "--quiet"])
    assert main([str(listed(f"{SCRIPT} --row plain --seeds 1 2")), "--jobs", "2", "--commit"]) == 0
    assert git(["git", "log", "--format=%s"]).startswith("Records: nmt_lectures 1.5-stand-in, plain, seed ")
    assert git(["git", "status", "--short", "recipes/nmt_lectures/records"]) == ""
    assert not Path("refused").exists()


def test_status_says_what_runs_and_what_is_left(listed, capsys):
    path = listed(f"{SCRIPT} --row plain --seeds 1 2")
    out = read_list(path)[0].out
    out.parent.mkdir(parents=True)
    with locked(out.parent / f".{out.name}.evidence"):
        assert main([str(path), "--status"]) == 0
    assert "0 done, 1 running, 1 left; about 3 minutes of one thread" in capsys.readouterr().out


@pytest.mark.parametrize("line, message", [
    ("recipes/nmt_lectures/none.sh", "line 2"), (f"{SCRIPT} --row nothing", "no row matches 'nothing'"),
    (f"{SCRIPT} --scale huge", "argument --scale"), (f"{SCRIPT} --lr 1", "expected --scale, --row and --seeds alone"),
    (f"{SCRIPT} --seeds x", "argument --seeds"), (f"{SCRIPT} --seeds 0", "1 or more, got '0'"),
    (f"{SCRIPT} --row 'plain", "No closing quotation"), ("--scale small", "arguments are required: script"),
    (f"{SCRIPT} --jobs 3", "expected --scale, --row and --seeds alone"),
])
def test_a_wrong_line_is_named(listed, capsys, line, message):
    assert main([str(listed("# comment", line))]) == 1
    error = capsys.readouterr().err
    assert "evidence.txt, line 2" in error and message in error


def test_the_list_of_the_repository_is_readable(monkeypatch):
    """Its scripts, scales, rows and seeds are there; that each cell has a plan is tested with the recipes."""

    def plan(script, cell, **given):
        return SimpleNamespace(script=script, cell=cell, table="")

    monkeypatch.setattr(Script, "plan", plan)
    assert read_list(Path(__file__).parents[2] / "recipes" / "evidence.txt")
