"""Merge the lines of records that hold one number each into one line for each run; `migrate_records.py FOLDER ...`.

Lines of one run are those that differ in metric, value, unit and series alone.  A file may hold lines of both forms,
and lines twice (after a merge of two branches): what is there already is not repeated.  Records of scale smoke are
left out: they are no results.  A second time changes nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from seqstruct.data.files import atomic_write
from seqstruct.harness.records import Record

ALONE = ("metric", "value", "unit", "series")


def metrics_of(line: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The metrics of a line of either form."""
    if "metrics" in line:
        return line["metrics"]
    return {line["metric"]: {"value": line["value"], "unit": line["unit"], **line.get("series", {})}}


def migrate(lines: list[str]) -> list[str]:
    """The records of a file, one for each run, in the order in which runs first appear."""
    runs: dict[str, list[tuple[dict[str, Any], dict[str, dict[str, Any]]]]] = {}
    for line in map(json.loads, lines):
        if line["scale"] == "smoke":
            continue
        rest = {name: value for name, value in line.items() if name not in (*ALONE, "metrics")}
        found = metrics_of(line)
        of_run = runs.setdefault(json.dumps(rest, sort_keys=True), [])
        for _, metrics in of_run:  # a number that differs under one name is another run of the same command
            if all(metrics.get(name, metric) == metric for name, metric in found.items()):
                metrics |= found
                break
        else:
            of_run.append((rest, dict(found)))
    return [Record(metrics=metrics, **rest).to_json() for of_run in runs.values() for rest, metrics in of_run]


def main() -> int:
    """Rewrite every .jsonl file of the folders; a malformed line is named and its file left as it was."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    for folder in parser.parse_args().folders:
        for path in sorted(folder.glob("*.jsonl")):
            before = path.read_text(encoding="utf-8").splitlines()
            try:
                after = migrate(before)
            except (KeyError, TypeError, ValueError) as error:
                print(f"{path}: not records: {type(error).__name__}: {error}", file=sys.stderr)
                return 1
            if after != before:
                with atomic_write(path) as stream:
                    stream.write("".join(f"{line}\n" for line in after))
                print(f"{path}: {len(before)} lines, {len(after)} records")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
