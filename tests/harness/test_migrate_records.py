"""Lines of one number each become one line a run; no number is lost, and a second time changes nothing."""

from __future__ import annotations

import json
import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest

from seqstruct.harness.records import read_folder

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "migrate_records.py"
MIGRATION = runpy.run_path(str(SCRIPT))


def old_lines(record):
    """Of five runs, in the form of one number a line."""
    series = {"axis": "length", "points": [[40, 0.5], [42, 0.25]]}
    numbers = [
        (1, "small", "difference", 0.25, {"series": series}), (1, "small", "parameters", 43109, {}),
        (2, "small", "difference", 0.5, {}), (1, "paper", "difference", 0.125, {}), (1, "smoke", "difference", 9.0, {}),
        (2, "small", "difference", 0.75, {}), (2, "small", "parameters", 43109, {}),
    ]  # fmt: skip
    whole = json.loads(record().to_json())
    del whole["metrics"]
    return [json.dumps({**whole, "seed": seed, "scale": scale, "metric": metric, "value": value, "unit": "x", **split})
            for seed, scale, metric, value, split in numbers]  # fmt: skip


def numbers(lines):
    """All that the lines say, each number with all that belongs to it, how often."""
    found = Counter()
    for line in map(json.loads, lines):
        rest = {k: v for k, v in line.items() if k not in ("metric", "value", "unit", "series", "metrics")}
        for name, metric in MIGRATION["metrics_of"](line).items():
            found[json.dumps([rest, name, metric], sort_keys=True)] += 1
    return found


def test_every_number_is_kept_and_a_second_time_changes_nothing(record):
    before = old_lines(record)
    after = MIGRATION["migrate"](before)
    assert numbers(after) == numbers(line for line in before if '"smoke"' not in line)
    assert [list(json.loads(line)["metrics"]) for line in after] == [
        ["difference", "parameters"], ["difference", "parameters"], ["difference"], ["difference"]]
    assert MIGRATION["migrate"](after) == after
    assert MIGRATION["migrate"]([*after, *before]) == after, "what a merge of two branches doubles"


def test_files_are_rewritten_whole_or_left(record, tmp_path, monkeypatch, capsys):
    path = tmp_path / "figure-2.jsonl"
    path.write_text("\n".join(old_lines(record)) + "\n")
    monkeypatch.setattr(sys, "argv", ["migrate_records.py", str(tmp_path)])
    main = MIGRATION["main"]
    assert main() == 0 and capsys.readouterr().out == f"{path}: 7 lines, 4 records\n"
    assert len(read_folder(tmp_path)) == 4
    assert main() == 0 and capsys.readouterr().out == ""
    path.write_text("{}\n")
    assert main() == 1 and path.read_text() == "{}\n"
    assert capsys.readouterr().err.startswith(f"{path}: not records: KeyError")


@pytest.mark.parametrize("path", sorted(SCRIPT.parents[1].glob("recipes/*/records/*.jsonl")),
                         ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_the_records_of_the_repository_are_in_this_form(path):
    lines = path.read_text("utf-8").splitlines()
    assert MIGRATION["migrate"](lines) == lines
