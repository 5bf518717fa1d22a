"""What a file of this project may not have: undue length, and paths of the machine it was written on."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES = 450
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home|root|Users|opt|mnt)/\w|(?<![\w.])/tmp/\w")


def tracked():
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]


def test_files_are_of_moderate_length():
    for path in tracked():
        if path.suffix in {".py", ".sh"}:
            lines = path.read_text("utf-8").count("\n")
            assert lines <= MOST_LINES, f"{path.relative_to(ROOT)} has {lines} lines"


def test_no_path_of_a_machine():
    for path in tracked():
        if path.suffix in {".py", ".sh", ".md", ".yaml", ".jsonl", ".cff", ".txt"} and "golden" not in path.parts:
            found = MACHINE_PATH.search(path.read_text("utf-8"))
            assert path == Path(__file__) or not found, f"{path.relative_to(ROOT)}: {found.group()}"
