"""A paper's table, ours beside the paper's: number of runs, best by validation, mean and deviation."""

from __future__ import annotations

import csv
import io
import json
import shutil
import statistics
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Mapping, Sequence

from seqstruct.harness.records import Record, format_value, latest, of_each_seed, read_folder
from seqstruct.harness.shared import shared_folder

FORMATS = ("text", "markdown", "csv")


@dataclass(frozen=True)
class Published:
    """One number or statement of the source.  value: None where the source gives words alone.

    baseline: the row that ours of this row is tested against, or None.  average_of: for an average over rows, the
    pattern (as in a shell) of those rows of the table that have a value of this metric.
    """

    row: str
    metric: str
    unit: str
    value: float | None = None
    statement: str = ""
    baseline: str | None = None
    average_of: str | None = None


@dataclass(frozen=True)
class Table:
    """One table of the source.  selection: the metric that chooses the best run.  better: "lower" or "higher".

    layout: "lines", one for each row and metric, or "matrix": metrics side by side.  baselines, theirs: patterns (as in
    a shell) of rows that data alone decide, and of systems of other authors, which no recipe runs.
    """

    name: str
    title: str
    selection: str | None
    better: str
    published: tuple[Published, ...]
    layout: str = "lines"
    baselines: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()

    def kind(self, row: str) -> str:
        """"baseline", "theirs", or nothing for a model of ours."""
        for kind, patterns in (("baseline", self.baselines), ("theirs", self.theirs)):
            if any(fnmatchcase(row, pattern) for pattern in patterns):
                return kind
        return ""


@dataclass(frozen=True)
class Line:
    """One line of a report: a row and metric as published, and our runs of one scale and configuration (or none).

    average_best: the mean of the best values of the rows that the line is an average of.  dirty: how many of the runs
    were made by code that differed from the commit that they name.  kind: as of `Table.kind`.
    """

    row: str
    metric: str
    unit: str
    published: float | None
    statement: str
    scale: str = ""
    configuration_hash: str = ""
    values: Mapping[int, float] = field(default_factory=dict)
    best_seed: int | None = None
    baseline: str | None = None
    p_value: float | None = None
    average_best: float | None = None
    dirty: int = 0
    kind: str = ""

    @property
    def runs(self) -> str:
        """How many, and how many of them of uncommitted code."""
        if not self.values:
            return self.missing
        return f"{len(self.values)} ({self.dirty} dirty)" if self.dirty else str(len(self.values))

    @property
    def missing(self) -> str:
        """What stands where there is no run."""
        return "not ours" if self.kind == "theirs" else "not yet run"

    @property
    def best(self) -> float | None:
        """The value of the run that is best by validation; None without a run or a validation value."""
        if self.average_best is not None:
            return self.average_best
        return None if self.best_seed is None else self.values[self.best_seed]

    @property
    def mean(self) -> float | None:
        """The mean over seeds, None without a run."""
        return statistics.fmean(self.values.values()) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over seeds, None below two runs."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else None


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


def read_tables(folder: Path) -> list[Table]:
    """The tables of a folder's paper.json.  Raises ValueError naming the file if it does not have the expected form."""
    path = folder / "paper.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return [
            Table(name, table["title"], table.get("selection"), table.get("better", "lower"),
                  tuple(Published(**entry) for entry in table["rows"]), table.get("layout", "lines"),
                  tuple(table.get("baselines", ())), tuple(table.get("theirs", ())))
            for name, table in content["tables"].items()
        ]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from None


def lines_of(table: Table, records: Sequence[Record], scales: Sequence[str]) -> list[Line]:
    """The lines of one table: every published row and metric with our runs at these scales, then what is ours alone."""
    ours = [r for r in of_each_seed(latest(records)) if r.table == table.name and r.scale in scales]
    groups: dict[tuple[str, str, str, str], dict[int, Record]] = {}
    for r in ours:
        for metric in r.metrics:
            groups.setdefault((r.row, metric, r.scale, r.configuration_hash), {})[r.seed] = r
    published = {(p.row, p.metric): p for p in table.published}
    rows = list(dict.fromkeys([p.row for p in table.published] + [r.row for r in ours]))
    found = []
    for row in rows:
        of_ours = [metric for r in ours if r.row == row for metric in r.metrics]
        metrics = dict.fromkeys([m for r, m in published if r == row] + of_ours)
        for metric in metrics:
            entry = published.get((row, metric))
            of_line = [key for key in groups if key[:2] == (row, metric)]
            found += [_line(table, entry, key, groups) for key in of_line]
            if not of_line and entry is not None:
                averages = _averages(table, entry, found, scales) if entry.average_of else []
                found += averages or [Line(row, metric, entry.unit, entry.value, entry.statement)]
    return [replace(line, kind=table.kind(line.row)) for line in found]


def _averages(table: Table, entry: Published, lines: Sequence[Line], scales: Sequence[str]) -> list[Line]:
    """An average over rows, of each seed that all of them have, for each scale at which all rows were run.

    lines: those before it; of several configurations of a row the last counts.
    """
    rows = [
        p.row for p in table.published
        if p.metric == entry.metric and p.value is not None and p is not entry and fnmatchcase(p.row, entry.average_of)
    ]
    found = []
    for scale in scales:
        parts = {line.row: line for line in lines if (line.metric, line.scale) == (entry.metric, scale)}
        if not rows or not all(row in parts for row in rows):
            continue
        of_rows = [parts[row] for row in rows]
        seeds = set.intersection(*(set(line.values) for line in of_rows))
        values = {seed: statistics.fmean(line.values[seed] for line in of_rows) for seed in sorted(seeds)}
        bests = [line.best for line in of_rows]
        best = None if None in bests else statistics.fmean(bests)
        found.append(Line(entry.row, entry.metric, entry.unit, entry.value, entry.statement, scale, values=values,
                          average_best=best))
    return found


def _line(
    table: Table, entry: Published | None, key: tuple[str, str, str, str], groups: Mapping[tuple, Mapping[int, Record]]
) -> Line:
    row, metric, scale, configuration = key
    runs = groups[key]
    values = {seed: runs[seed].metrics[metric]["value"] for seed in sorted(runs)}
    judged = {seed: r.metrics[table.selection]["value"]
              for seed, r in groups.get((row, table.selection, scale, configuration), {}).items()}  # fmt: skip
    candidates = [seed for seed in values if seed in judged]
    choose = max if table.better == "higher" else min
    best_seed = choose(candidates, key=lambda seed: judged[seed]) if candidates else None
    baseline = next((p.baseline for p in table.published if p.row == row and p.baseline), None)
    against = [
        [r.metrics[metric]["value"] for r in other.values()] for other_key, other in groups.items()
        if other_key[:3] == (baseline, metric, scale)
    ]
    p_value = welch(list(values.values()), against[-1]) if against else None
    unit = next(iter(runs.values())).metrics[metric]["unit"]
    return Line(
        row, metric, unit, entry.value if entry else None, entry.statement if entry else "",
        scale, configuration, values, best_seed, baseline, p_value, dirty=sum(r.dirty for r in runs.values()),
    )


def welch(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided p of Welch's t test that two samples have one mean; None if it is undefined.

    Undefined below two values in either sample, and where neither sample varies.
    """
    if min(len(first), len(second)) < 2:
        return None
    from scipy.stats import ttest_ind_from_stats

    if statistics.variance(first) == statistics.variance(second) == 0:
        return None
    of_first, of_second = ((statistics.mean(x), statistics.stdev(x), len(x)) for x in (first, second))
    return float(ttest_ind_from_stats(*of_first, *of_second, equal_var=False).pvalue)


def report(
    folder: Path,
    records: Path,
    *,
    table: str | None = None,
    scales: Sequence[str] = ("small", "paper"),
    seeds: bool = False,
    output: str = "text",
) -> str:
    """The report of a paper's folder, as text.

    folder: with paper.json.  records: folder of .jsonl files.  table: one alone, or all.  seeds: every run's value.
    output: "text", "markdown" or "csv".  Raises ValueError for a table that neither the source nor a record has.
    """
    if output not in FORMATS:
        raise ValueError(f"format {output!r} is unknown; formats: {', '.join(FORMATS)}")
    found = read_folder(records)
    tables = read_tables(folder)
    unpublished = dict.fromkeys(r.table for r in found if r.table not in {t.name for t in tables})
    tables += [Table(name, "not in paper.json", None, "lower", ()) for name in unpublished]
    if table is not None:
        names = [t.name for t in tables]
        tables = [t for t in tables if t.name == table]
        if not tables:
            raise ValueError(f"{folder.name} has no table {table!r}; tables: {', '.join(names)}")
    sections = [(t, lines_of(t, found, scales)) for t in tables]
    headings = [name for name, _ in _columns(seeds)]
    if output == "csv":
        return _csv(["table", *headings], [[t.name, *_cells(line, seeds)] for t, lines in sections for line in lines])
    draw = _markdown if output == "markdown" else _text
    drawn = []
    for t, lines in sections:
        grid = _matrix(lines) if t.layout == "matrix" else (headings, [_cells(line, seeds) for line in lines])
        drawn.append(draw(f"{folder.name}, {t.name}: {t.title}", *grid))
    return "\n".join(drawn)


def _matrix(lines: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of a table with a column for each metric: our mean, and the published number in brackets.

    A metric that a row's runs lack, and that is not published, is not measured there: an empty cell.
    """
    metrics = list(dict.fromkeys(line.metric for line in lines))
    runs = {row: [line for line in lines if line.row == row and line.values] for row in dict.fromkeys(
        line.row for line in lines)}  # fmt: skip
    rows = []
    for row, ran in runs.items():
        of_row = [line for line in lines if line.row == row]
        published = {line.metric: line.published for line in of_row}
        for scale, configuration in dict.fromkeys((line.scale, line.configuration_hash) for line in ran) or [("", "")]:
            ours = {line.metric: line.mean for line in ran if line.configuration_hash == configuration}
            given = [format_value(published.get(metric)) for metric in metrics]
            blanks = ["" if ours and not paper else of_row[0].missing for paper in given]
            cells = [format_value(ours.get(metric)) or blank for metric, blank in zip(metrics, blanks, strict=True)]
            shown = [f"{cell} ({paper})" if paper else cell for cell, paper in zip(cells, given, strict=True)]
            rows.append([_name(of_row[0]), scale, *shown])
    return ["row", "scale", *(metric.replace("_", " ") for metric in metrics)], rows


def _columns(seeds: bool) -> list[tuple[str, Any]]:
    columns: list[tuple[str, Any]] = [
        ("row", _name),
        ("metric", lambda line: line.metric.replace("_", " ")),
        ("unit", lambda line: line.unit),
        ("paper", lambda line: line.statement if line.published is None else format_value(line.published)),
        ("scale", lambda line: line.scale),
        ("runs", lambda line: line.runs),
        ("best by validation", lambda line: format_value(line.best)),
        ("mean", lambda line: format_value(line.mean)),
        ("deviation", lambda line: format_value(line.deviation)),
        ("p against", lambda line: "" if line.p_value is None else f"{line.p_value:.2g} {line.baseline}"),
    ]
    if seeds:
        columns.append(("seeds", lambda line: " ".join(f"{s}:{format_value(v)}" for s, v in line.values.items())))
    return columns


def _name(line: Line) -> str:
    return f"{line.row} (baseline)" if line.kind == "baseline" else line.row


def _cells(line: Line, seeds: bool) -> list[str]:
    return [value(line) for _, value in _columns(seeds)]


def _csv(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return stream.getvalue()


def _markdown(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([f"### {title}", "", line(headings), line(["---"] * len(headings)), *map(line, rows), ""])


def _text(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(title=title, title_justify="left")
    for heading in headings:
        numeric = heading in ("runs", "best by validation", "mean", "deviation")
        grid.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    stream = io.StringIO()
    width = max(120, shutil.get_terminal_size((160, 24)).columns)
    console = Console(file=stream, width=width, markup=False, highlight=False)
    console.print(grid)
    return stream.getvalue()
