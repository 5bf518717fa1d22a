"""A paper's table, ours beside the paper's: rows and metrics, mean and deviation over seeds, tests between rows."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import statistics
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Mapping, Sequence

from seqstruct.command import markdown_table
from seqstruct.harness.page import Sheet, Shown, page
from seqstruct.harness.paper import Published, Table, read_tables
from seqstruct.harness.records import Record, format_value, latest, of_each_seed, read_folder
from seqstruct.scoring.significance import holm, welch

FORMATS = ("text", "markdown", "csv", "html")
CHOOSING = ("validation_", "search_", "chosen_", "loss_at_")  # metrics that settings or runs are chosen by
SILENT = ("not given", "not in the source", "no published number")  # what statements of nothing begin with
COLUMNS = ("table", "row", "metric", "unit", "paper", "scale", "runs", "best by validation", "mean", "deviation",
           "p", "against", "seeds")


@dataclass(frozen=True)
class Line:
    """One number of a table: a row and metric as published, and our runs of one scale and configuration (or none).

    runs: by seed; none for an average over rows.  best: of the run that is best by validation, in an average the mean
    of its rows' best.  p_value: corrected for all tests of the table.  kind: as of `Table.kind`.
    """

    row: str
    metric: str
    unit: str
    published: float | None
    statement: str
    scale: str = ""
    configuration_hash: str = ""
    values: Mapping[int, float] = field(default_factory=dict)
    runs: Mapping[int, Record] = field(default_factory=dict)
    best: float | None = None
    p_value: float | None = None
    kind: str = ""

    @property
    def count(self) -> str:
        """How many runs, and how many of them of uncommitted code."""
        if not self.values:
            return "not ours" if self.kind == "theirs" else "not yet run"
        dirty = sum(run.dirty for run in self.runs.values())
        return f"{len(self.values)}, {dirty} dirty" if dirty else str(len(self.values))

    @property
    def mean(self) -> float | None:
        """The mean over seeds, None without a run."""
        return statistics.fmean(self.values.values()) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over seeds, None below two runs."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else None

    @property
    def paper(self) -> str:
        """What the source says: its number, or its words; nothing where it is silent."""
        return format_value(self.published) or ("" if self.statement.startswith(SILENT) else self.statement)


def lines_of(table: Table, records: Sequence[Record], scales: Sequence[str]) -> list[Line]:
    """The lines of one table: every published row and metric with our runs at these scales, then what is ours alone.

    Raises ValueError where runs of one line have a metric in several units, whose mean says nothing.
    """
    ours = [r for r in of_each_seed(latest(records)) if r.table == table.name and r.scale in scales]
    groups: dict[tuple[str, str, str, str], dict[int, Record]] = {}
    for r in ours:
        for metric in r.metrics:
            groups.setdefault((r.row, metric, r.scale, r.configuration_hash), {})[r.seed] = r
    groups = {key: dict(sorted(runs.items())) for key, runs in groups.items()}
    published = {(p.row, p.metric): p for p in table.published}
    rows = list(dict.fromkeys([p.row for p in table.published] + [r.row for r in ours]))
    found: list[Line] = []
    for row in rows:
        of_ours = [metric for r in ours if r.row == row for metric in r.metrics]
        for metric in dict.fromkeys([m for r, m in published if r == row] + of_ours):
            entry = published.get((row, metric), Published(row, metric, ""))
            of_line = [key for key in groups if key[:2] == (row, metric)]
            found += [_line(table, entry, key, groups) for key in of_line]
            if not of_line:
                averages = _averages(table, entry, found, scales) if entry.average_of else []
                found += averages or [Line(row, metric, entry.unit, entry.value, entry.statement)]
    return _tested(table, [replace(line, kind=table.kind(line.row)) for line in found])


def _averages(table: Table, entry: Published, lines: Sequence[Line], scales: Sequence[str]) -> list[Line]:
    """Ours of an average over rows, one line for each scale at which all of them have runs of a seed.

    lines: those before it; of several configurations of a row the last counts.
    """
    pattern = entry.average_of or ""
    rows = [
        p.row for p in table.published
        if p.metric == entry.metric and p.value is not None and p is not entry and fnmatchcase(p.row, pattern)
    ]
    found = []
    for scale in scales:
        parts = {line.row: line for line in lines if (line.metric, line.scale) == (entry.metric, scale)}
        if not rows or not all(row in parts for row in rows):
            continue
        of_rows = [parts[row] for row in rows]
        seeds = set.intersection(*(set(line.values) for line in of_rows))
        if not seeds:
            continue
        values = {seed: statistics.fmean(line.values[seed] for line in of_rows) for seed in sorted(seeds)}
        bests = [line.best for line in of_rows]
        found.append(Line(entry.row, entry.metric, entry.unit, entry.value, entry.statement, scale, values=values,
                          best=None if None in bests else statistics.fmean(bests)))
    return found


def _line(
    table: Table, entry: Published, key: tuple[str, str, str, str], groups: Mapping[tuple, Mapping[int, Record]]
) -> Line:
    row, metric, scale, configuration = key
    runs = groups[key]
    values = {seed: run.metrics[metric]["value"] for seed, run in runs.items()}
    judged = groups.get((row, table.selection, scale, configuration), {})

    def merit(seed: int) -> tuple[float, float]:
        value, tie = (judged[seed].metrics.get(name, {}).get("value", 0.0) for name in (table.selection, table.ties))
        return value if table.better == "higher" else -value, -tie

    chosen = max((seed for seed in runs if seed in judged), key=merit, default=None)
    unit, *others = sorted({run.metrics[metric]["unit"] for run in runs.values()})
    if others:
        several = ", ".join([unit, *others])
        raise ValueError(f"{table.name}, {row}: expected runs with one unit of {metric}, got {several}")
    return Line(row, metric, unit, entry.value, entry.statement, scale, configuration, values, runs, values.get(chosen))


def _tested(table: Table, lines: Sequence[Line]) -> list[Line]:
    """The lines with p-values where the table's tests are defined."""
    found: dict[int, float] = {}
    for at, line in enumerate(lines):
        other = (table.against(line.row), line.metric, line.scale)
        beside = [o for o in lines if (o.row, o.metric, o.scale) == other and o.values]
        if line.metric in table.tests and line.values and beside:
            p_value = welch(list(line.values.values()), list(beside[-1].values.values()))
            if p_value is not None:
                found[at] = p_value
    corrected = dict(zip(found, holm(list(found.values())), strict=True))
    return [replace(line, p_value=corrected.get(at)) for at, line in enumerate(lines)]


def sheet(folder: Path, table: Table, lines: Sequence[Line], *, everything: bool, seeds: bool) -> Sheet:
    """A table with a column for each metric, and a row for each row that has runs.

    Configurations of a row that measured the same stand apart; columns in which nothing stands are left out.

    everything: also metrics that settings or runs are chosen by (otherwise only where the source gives numbers of
    them), and rows without a run.  seeds: every run's value in place of how many there are.
    """
    listed = {p.metric for p in table.published}
    given = {p.metric for p in table.published if p.value is not None}
    units = {line.metric: line.unit for line in lines}
    metrics = [
        m for m in dict.fromkeys([*(p.metric for p in table.published), *units])
        if everything or m in given or m != table.selection and (m in listed or not m.startswith(CHOOSING))
    ]
    ran = {o.row for o in lines if o.values}
    missing = [row for row in dict.fromkeys(o.row for o in lines) if row not in ran]
    runs = [o for o in lines if o.values or everything and o.row in missing]
    scales = ["scale"] if len({o.scale for o in runs if o.values}) > 1 else []
    drawn: list[tuple[Line, dict[str, Line]]] = []
    for key in dict.fromkeys((o.row, o.scale, o.configuration_hash) for o in runs):
        found = {o.metric: o for o in runs if (o.row, o.scale, o.configuration_hash) == key}
        beside = [other for o, other in drawn if (o.row, o.scale) == key[:2] and not other.keys() & found.keys()]
        if beside:  # measured by another recipe
            beside[0].update(found)
        else:
            drawn.append((next(iter(found.values())), found))
    rows = []
    for first, found in drawn:
        found = {**{o.metric: o for o in lines if o.row == first.row and not o.values}, **found}
        alike = [o for o, _ in drawn if (o.row, o.scale) == (first.row, first.scale)]
        name = f"{first.row} (baseline)" if first.kind == "baseline" else first.row
        name += f" ({first.configuration_hash[:8]})" if len(alike) > 1 else ""
        entries = [_entry(found[m], table, seeds) if m in found else Shown("") for m in metrics]
        rows.append([Shown(name), *(Shown(first.scale) for _ in scales), *entries])
    headings = ["row", *scales]
    headings += [m.replace("_", " ") + (f" ({units[m]})" if units[m].lower() not in m else "") for m in metrics]
    filled = [at for at in range(len(headings)) if any(row[at].text for row in rows)]
    headings, rows = [headings[at] for at in filled], [[row[at] for at in filled] for row in rows]
    below = _remarks(table, lines, [] if everything else missing)
    title, recipe = f"{folder.name}, {table.name}: {table.title}", recipe_of(folder, table.name)
    above = [*([f"Recipe: {_commands(recipe, lines)}"] if recipe else []), *_differences(lines)]
    return Sheet(table.name, title, above, headings, rows, below)


def _entry(line: Line, table: Table, seeds: bool) -> Shown:
    """Mean, deviation, number of runs, the best by validation where the source gives that, p, and the source's."""
    ours = ""
    if line.values:
        each = "; ".join(f"{seed}: {format_value(value)}" for seed, value in line.values.items())
        ours = f"{_spread(line)} ({each if seeds else line.count})"
        if line.metric in table.best and line.best is not None and len(line.values) > 1:
            ours += f", best {format_value(line.best)}"
        if line.p_value is not None:
            ours += f", p {line.p_value:.2g}"
    paper = f"[{line.paper}]" if line.paper else ""
    details = [
        f"seed {seed}: {value!r}, commit {run.versions.get('commit', 'unknown')}: {run.command}"
        for (seed, value), run in zip(line.values.items(), line.runs.values(), strict=False)
    ]
    return Shown(f"{ours} {paper}".strip(), line.mean if line.values else None, "\n".join(details))


def _spread(line: Line) -> str:
    """Mean and deviation, to two digits of the deviation."""
    if not line.deviation:
        return format_value(line.mean) + ("" if line.deviation is None else " ± 0")
    decimals = max(0, 1 - math.floor(math.log10(line.deviation)))
    return f"{line.mean:,.{decimals}f} ± {line.deviation:,.{decimals}f}"


def _differences(lines: Sequence[Line]) -> list[str]:
    """For each scale what the runs were made with: parts that all have in common once, the others side by side."""
    alike: dict[tuple[str, int], list[list[str]]] = {}
    for dataset, scale in dict.fromkeys((r.dataset, r.scale) for line in lines for r in line.runs.values()):
        parts = re.split(r", (?![^()]*\))", dataset)
        alike.setdefault((scale, len(parts)), []).append(parts)
    return [
        f"Ours, scale {scale}: " + ", ".join(" / ".join(dict.fromkeys(part)) for part in zip(*parts, strict=True))
        for (scale, _), parts in alike.items()
    ]


def _commands(recipe: Path, lines: Sequence[Line]) -> str:
    """What makes the runs: the recipe, with their scales and seeds where these are others than small and 1."""
    seeds: dict[str, set[int]] = {}
    for run in (run for line in lines for run in line.runs.values()):
        named = re.search(r"--seeds? (\d+)", run.command)  # the cell's, where several are trained as one batch
        seeds.setdefault(run.scale, set()).add(int(named[1]) if named else run.seed)
    return "; ".join(
        f"{recipe}{f' --scale {scale}' if scale != 'small' else ''}"
        + (f" --seeds {' '.join(map(str, sorted(found)))}" if found != {1} else "")
        for scale, found in (seeds or {"small": {1}}).items()
    )


def _remarks(table: Table, lines: Sequence[Line], missing: Sequence[str]) -> list[str]:
    """What p stands for, which rows have no run, and which are other authors' systems."""
    found = []
    tested = [line for line in lines if line.p_value is not None]
    if tested:
        against = ", ".join(dict.fromkeys(str(table.against(line.row)) for line in tested))
        found.append(f"p: Welch's t test against {against}, Holm-corrected for the {len(tested)} tests of the table.")
    nothing = not any(line.values for line in lines)
    own = "Not tested, since no row has been run yet" if nothing else "Not yet run"
    for kind, words in ((False, own), (True, "Systems of other authors, not run")):
        names = [row for row in missing if (table.kind(row) == "theirs") == kind]
        found += [f"{words}: {'; '.join(names)}."] if names else []
    return found


def recipe_of(folder: Path, table: str) -> Path | None:
    """The recipe of a table, by name: table-NAME.sh or NAME.sh, where a stand-in's may be that of its table."""
    while table:
        for name in (f"table-{table}.sh", f"{table}.sh"):
            if (folder / name).is_file():
                return Path("recipes", folder.name, name)
        table = table.rpartition("-")[0]
    return None


def report(
    folder: Path,
    records: Path,
    *,
    table: str | None = None,
    scales: Sequence[str] = ("small", "paper"),
    everything: bool = False,
    seeds: bool = False,
    output: str = "text",
) -> str:
    """The report of a paper's folder, as text.

    folder: with paper.json.  records: folder of .jsonl files.  table: one alone, or all.  everything, seeds: as of
    `sheet`.  output: "text", "markdown", "html", or "csv", which has one line for each row and metric.
    Raises ValueError for a table that neither the source nor a record has.
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
    if output == "csv":
        return _csv(sections)
    sheets = [sheet(folder, t, lines, everything=everything, seeds=seeds) for t, lines in sections]
    if output == "html":
        return page(f"{folder.name}: ours beside the paper's", sheets)
    return "\n".join(map(_markdown if output == "markdown" else _text, sheets))


def _csv(sections: Sequence[tuple[Table, Sequence[Line]]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for table, lines in sections:
        for line in lines:
            p_value = [f"{line.p_value:.2g}", table.against(line.row)] if line.p_value is not None else ["", ""]
            writer.writerow([
                table.name, line.row, line.metric, line.unit, line.paper, line.scale, line.count,
                *map(format_value, (line.best, line.mean, line.deviation)), *p_value,
                " ".join(f"{seed}:{format_value(value)}" for seed, value in line.values.items()),
            ])
    return stream.getvalue()


def _markdown(drawn: Sheet) -> str:
    rows = [[entry.text for entry in row] for row in drawn.rows]
    grid = [markdown_table(drawn.headings, rows), ""] if rows else []
    above, below = ([part for text in texts for part in (text, "")] for texts in (drawn.above, drawn.below))
    return "\n".join([f"### {drawn.title}", "", *above, *grid, *below])


def _text(drawn: Sheet) -> str:
    from rich.console import Console
    from rich.table import Table as Grid

    stream = io.StringIO()
    width = max(120, shutil.get_terminal_size((160, 24)).columns)
    console = Console(file=stream, width=width, markup=False, highlight=False)
    grid = Grid()
    for heading in drawn.headings:
        grid.add_column(heading, overflow="fold")
    for row in drawn.rows:
        grid.add_row(*(entry.text for entry in row))
    console.print("\n".join([drawn.title, *drawn.above]))
    if drawn.rows:
        console.print(grid)
    for sentence in drawn.below:
        console.print(sentence)
    return stream.getvalue()
