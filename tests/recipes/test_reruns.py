"""Three records, by name, made again by the commands that users have: the same numbers to the last digit.

Slow, and a part of CI.  A change that moves one of them has to make its record again, and to say so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqstruct.harness.provenance import machine
from seqstruct.harness.records import Record, latest, read_folder
from seqstruct.ops.linear import VARIABLE as LINEAR

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
NAMED = {  # row: table, scale and script
    "BPE": ("bpe-statistics-stand-in", "small", "nmt_lectures/bpe-statistics.sh"),
    "BiLSTM": ("2.2-stand-in", "small", "peng_thesis/table-2.2.sh"),
    "task 17 MemN2N": ("4", "paper", "structured_attention/table-4.sh"),
}


def of_row(folder: Path, row: str) -> Record:
    """The record of the first seed."""
    table, scale, _ = NAMED[row]
    records = latest(read_folder(folder))
    (found,) = (r for r in records if (r.row, r.table, r.scale, r.seed) == (row, table, scale, 1))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("row", NAMED)
def test_a_record_reruns_to_its_numbers(row, reference, monkeypatch, tmp_path):
    monkeypatch.delenv(LINEAR, raising=False)  # as users have it
    _, scale, script = NAMED[row]
    recorded = of_row(RECIPES / script.partition("/")[0] / "records", row)
    here = {**machine(), "threads": "1"}
    there = {**here, **(recorded.machine or {})}
    if there != here:
        pytest.skip(f"recorded on {there}, and this is {here}")
    words = ["--scale", scale, "--row", row, "--seeds", "1", "--runs", tmp_path, "--records", tmp_path / "records"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(RECIPES / script), *map(str, words)], env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    found = of_row(tmp_path / "records", row)
    assert (found.metrics, found.configuration_hash) == (recorded.metrics, recorded.configuration_hash)
