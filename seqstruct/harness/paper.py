"""What a paper.json says: the tables of a paper, their published numbers, and how ours are compared with them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Mapping

import seqstruct

INSTALLED = "_share"  # in a wheel


@dataclass(frozen=True)
class Published:
    """One number or statement of the source.  value: None where the source gives words alone.

    average_of: for an average over rows, the pattern (as in a shell) of those rows of the table that have a value of
    this metric.
    """

    row: str
    metric: str
    unit: str
    value: float | None = None
    statement: str = ""
    average_of: str | None = None


@dataclass(frozen=True)
class Table:
    """One table of the source.  selection: the metric that chooses the best run.  better: "lower" or "higher".
    ties: the metric that chooses among runs that are equal by that one, the least first.

    Patterns are as in a shell.  baselines, theirs: of rows that data alone decide, and of systems of other authors,
    which no recipe runs.  tests: the metrics that are tested, each row against the one that `compare` names for the
    first pattern that fits it.  best: metrics of which the source reports the run that is best by validation.
    """

    name: str
    title: str
    selection: str | None
    better: str
    published: tuple[Published, ...]
    baselines: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    compare: Mapping[str, str] = field(default_factory=dict)
    best: tuple[str, ...] = ()
    ties: str | None = None

    def kind(self, row: str) -> str:
        """"baseline", "theirs", or nothing for a model of ours."""
        for kind, patterns in (("baseline", self.baselines), ("theirs", self.theirs)):
            if any(fnmatchcase(row, pattern) for pattern in patterns):
                return kind
        return ""

    def against(self, row: str) -> str | None:
        """The row that a row is tested against; None for itself, and for what is no model of ours."""
        found = next((other for pattern, other in self.compare.items() if fnmatchcase(row, pattern)), None)
        return None if found == row or self.kind(row) else found


def shared_folder(name: str) -> Path:
    """The folder `configs` or `recipes`; of recipes a wheel has paper.json and the records alone."""
    package = Path(seqstruct.__file__).resolve().parent
    # another package may have put a folder of such a name beside an installed one, so what the wheel brought is first
    installed = package / INSTALLED
    return (installed if installed.is_dir() else package.parent) / name


def paper_folder(paper: str) -> Path:
    """The folder of a paper's recipes: a path, or a name under recipes/ here, in the checkout or in the wheel.

    Raises ValueError if there is none with a paper.json.
    """
    roots = (Path("recipes"), shared_folder("recipes"))
    candidates = [Path(paper), *(root / paper for root in roots)]
    for folder in candidates:
        if (folder / "paper.json").is_file():
            return folder
    known = sorted({found.parent.name for root in roots for found in root.glob("*/paper.json")})
    raise ValueError(
        f"no recipes of {paper!r}: expected a folder with a paper.json, or one of: {', '.join(known) or 'none found'}"
    )


def _published(metrics: Mapping[str, str], rows: Mapping, averages: Mapping[str, str]) -> tuple[Published, ...]:
    if unknown := averages.keys() - rows.keys():
        raise ValueError(f"averages of rows that are not there: {', '.join(sorted(unknown))}")
    found = []
    for row, cells in rows.items():
        if isinstance(cells, list):
            if len(cells) != len(metrics):
                raise ValueError(f"{row}: expected {len(metrics)} cells, one for each metric, got {len(cells)}")
            cells = dict(zip(metrics, cells, strict=True))
        elif not isinstance(cells, dict):
            cells = dict.fromkeys(metrics, cells)
        found += [Published(row, metric, metrics[metric], *_cell(row, cell), averages.get(row))
                  for metric, cell in cells.items()]
    return tuple(found)


def _cell(row: str, cell: object) -> tuple[float | None, str]:
    """The number and the statement of a cell."""
    match cell:
        case None:
            return None, ""
        case str():
            return None, cell
        case int() | float():
            return cell, ""
        case [int() | float() as value, str(statement)]:
            return value, statement
    raise ValueError(f"{row}: expected a number, a statement, both as a list or null, got {cell!r}")


def read_tables(folder: Path) -> list[Table]:
    """The tables of a folder's paper.json.

    A table has `metrics`, each with its unit, and `rows`: for each metric a cell, as a list, as an object where some
    metrics are not the row's, or one for all.  A cell is a number of the source, a statement, both as a list, or
    null where the source has neither; `averages` has the pattern of the rows that a row is an average of.  Raises
    ValueError naming the file if it does not have this form.
    """
    path = folder / "paper.json"
    lists = ("baselines", "theirs", "tests", "best")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return [
            Table(name, table["title"], table.get("selection"), table.get("better", "lower"),
                  _published(table["metrics"], table["rows"], table.get("averages", {})),
                  compare=dict(table.get("compare", {})), ties=table.get("ties"),
                  **{key: tuple(table.get(key, ())) for key in lists})
            for name, table in content["tables"].items()
        ]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from None
