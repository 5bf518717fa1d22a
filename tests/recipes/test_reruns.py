"""Records, by name, made again by the commands that users have: the same numbers to the last digit.

Slow, and a part of CI.  A change that moves one of them has to make its record again, and to say so.  A training ends
elsewhere on another kind of processor, so three kinds have one of their own; what is counted, not trained, is the same
on all, so that every kind makes three records again, and those three kinds four.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqstruct.harness.provenance import machine
from seqstruct.harness.records import Record, read_folder
from seqstruct.ops.linear import VARIABLE as LINEAR

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
COUNTED = "BPE", "5-gram", "task 17 most frequent answer"
NAMED = {  # row: table, scale, seed and script
    "BPE": ("bpe-statistics-stand-in", "small", 1, "nmt_lectures/bpe-statistics.sh"),
    "5-gram": ("3.1-stand-in", "small", 1, "peng_thesis/table-3.1.sh"),
    "task 17 most frequent answer": ("4", "paper", 1, "structured_attention/table-4.sh"),
    "BiLSTM": ("2.2-stand-in", "small", 1, "peng_thesis/table-2.2.sh"),
    "task 17 MemN2N": ("4", "paper", 1, "structured_attention/table-4.sh"),
    "BASE, not pretrained": ("5.6-stand-in", "small", 2, "peng_thesis/table-5.6.sh"),
}


def of_row(folder: Path, row: str) -> Record:
    """The newest record of the row and the seed that are named."""
    table, scale, seed, _ = NAMED[row]
    named = (row, table, scale, seed)
    return [r for r in read_folder(folder) if (r.row, r.table, r.scale, r.seed) == named][-1]


@pytest.mark.slow
@pytest.mark.parametrize("row", NAMED)
def test_a_record_reruns_to_its_numbers(row, reference, monkeypatch, tmp_path):
    monkeypatch.delenv(LINEAR, raising=False)  # as users have it
    _, scale, seed, script = NAMED[row]
    recorded = of_row(RECIPES / script.partition("/")[0] / "records", row)
    here = {**machine(), "threads": "1"}
    there = {**here, **(recorded.machine or {})}
    if row not in COUNTED and there != here:
        pytest.skip(f"recorded on {there}, and this is {here}")
    words = ["--scale", scale, "--row", row, "--seeds", str(seed), "--runs", tmp_path]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(RECIPES / script), *map(str, words), "--records", str(tmp_path / "records")],
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    found = of_row(tmp_path / "records", row)
    assert (found.metrics, found.configuration_hash) == (recorded.metrics, recorded.configuration_hash)
