"""Curves: a validation statistic by epoch, a metric by string length, a benchmark by length."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from seqstruct.bridge.logs import LogEntry, parse_lines
from seqstruct.data.text.aligned import read_lines
from seqstruct.harness.records import Record, latest
from seqstruct.plots.figures import one_panel, plain

DASHES = ("-", "--", ":", "-.")
LOOKS = 10 * len(DASHES)
Curves = Mapping[str, Mapping[int, float]]  # name in the legend -> length -> value


def learning_curves(logs: Mapping[str, Path], metric: str) -> Figure:
    """A validation statistic by epoch, one curve for each train.log.

    logs: path by the name in the legend.  metric: as fairseq logs it, without "valid_" ("loss", "difference").
    Raises ValueError if a log has no such statistic or is not UTF-8, OSError if it is missing.
    """
    figure, axes = one_panel("epoch", f"validation {metric.replace('_', ' ')}")
    for path in logs.values():
        entries = [e for e in _entries(path) if "epoch" in e.statistics]  # fairseq-validate names none
        points = {
            e.statistics["epoch"]: e.statistics[f"valid_{metric}"] for e in entries if f"valid_{metric}" in e.statistics
        }
        if not points:
            known = sorted({key[6:] for e in entries for key in e.statistics if key.startswith("valid_")})
            raise ValueError(f"{path}: no validation statistic {metric!r}; there are: {', '.join(known) or 'none'}")
        axes.plot(list(points), list(points.values()), marker="o", markersize=2.5)
    axes.legend(axes.get_lines(), list(map(plain, logs)), fontsize="small")
    return figure


def validated_lengths(logs: Mapping[str, Path], metric: str) -> Figure:
    """A statistic of the criterion `cfl_cross_entropy` by string length, one curve for each log of fairseq-validate.

    logs: path by the name in the legend; of --report-by-length and --log-format json, where the last line counts.
    metric: difference, cross_entropy or lower_bound.
    Raises ValueError if a log has no such statistic by length or is not UTF-8, OSError if it is missing.
    """
    figure, axes = one_panel("string length", f"{metric.replace('_', ' ')} (nats per symbol)")
    for path in logs.values():
        points: dict[int, float] = {}
        for entry in _entries(path):
            start = f"{entry.tag}_{metric}_"
            found = {int(key[len(start) :]): value for key, value in entry.statistics.items()
                     if key.startswith(start) and key[len(start) :].isdecimal()}
            points = found or points
        if not points:
            raise ValueError(f"{path}: no {metric!r} by length; fairseq-validate with --report-by-length and "
                             "--log-format json logs it")
        axes.plot(sorted(points), [points[length] for length in sorted(points)], marker="o", markersize=2.5)
    axes.legend(axes.get_lines(), list(map(plain, logs)), fontsize="small")
    axes.axhline(0.0, color="black", linewidth=0.8)
    return figure


def _entries(path: Path) -> list[LogEntry]:
    return parse_lines(part for line in read_lines(path) for part in line.splitlines())  # bars of progress have \r


def length_curves(
    records: Sequence[Record], title: str = "", selection: str | None = None, metric: str | None = None,
    panels: bool = False,
) -> Figure:
    """A metric split up by its axis, one curve for each row: the mean over seeds, with a band from least to greatest.

    selection: the metric whose least value chooses the run of a row that is drawn, alone, instead of the mean; None for
    the mean.  metric: what is drawn, None for the one that is split up, the selection apart.  panels: whether there is
    one for each first word of the rows ("dyck Tf+Nd"), with one legend of the other words and one colour for each.
    Perplexities have a logarithmic axis.  Raises ValueError if none of that name is split up, or if several are, or of
    several units or axes, or if nothing chooses among the runs of a row, or there are more curves than looks.
    """
    split, (metric, unit, axis) = _split_up(records, selection, metric)
    groups: dict[str, dict[str, str]] = {}
    for record in split:
        first, _, rest = record.row.partition(" ") if panels else ("", "", record.row)
        groups.setdefault(first, {})[record.row] = rest or first
    names = list(dict.fromkeys(name for rows in groups.values() for name in rows.values()))
    if len(names) > LOOKS:
        raise ValueError(f"expected at most {LOOKS} curves, which colours and dashes tell apart, got {len(names)} rows "
                         "of different names: choose some, or draw panels")
    columns = min(3, len(groups))
    lines = -(-len(groups) // columns)
    figure = Figure(figsize=(max(6.4, 3.6 * columns), max(5.0, 2.6 * lines + 0.8)), layout="constrained")
    handles: dict[str, Any] = {}
    grid = figure.subplots(lines, columns, squeeze=False).flat
    for axes, (first, rows) in zip(grid, groups.items(), strict=False):
        handles |= _draw_lengths(axes, split, metric, rows, {name: _look(i) for i, name in enumerate(names)})
        if unit == "perplexity":
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))  # all labels would overlap
        else:
            axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set_title(first, fontsize="medium")
        axes.set_xlabel(axis)
        if axes.get_subplotspec().is_first_col():
            axes.set_ylabel(metric.replace("_", " ") + (f"\n({unit})" if unit not in metric else ""), fontsize="small")
    for axes in figure.axes[len(groups) :]:
        axes.set_axis_off()
    figure.suptitle(plain(title), fontsize="medium")
    shown, columns = [handles[name] for name in names], min(len(names), 4 * columns)
    figure.legend(shown, names, loc="outside lower center", ncols=columns, fontsize="small")
    return figure


def _split_up(
    records: Sequence[Record], selection: str | None, metric: str | None
) -> tuple[list[Record], tuple[str, str, str]]:
    """The records to draw, and their one metric, unit and axis."""
    recent = latest(records)
    kinds = sorted({
        (name, found["unit"], found["axis"]) for r in recent for name, found in r.metrics.items()
        if "axis" in found and name != selection and metric in (None, name)
    })
    if len(kinds) != 1:
        known = sorted({name for r in recent for name, found in r.metrics.items() if "axis" in found})
        raise ValueError(
            f"expected records of one metric that is split up; got {len(kinds)}"
            + (f" of {metric}" if metric else "") + f"; there are: {', '.join(known) or 'none'}"
        )
    split = with_points(recent, kinds[0][0])
    if selection is not None:
        judged = {
            (r.row, r.scale, r.configuration_hash, r.seed): r.metrics[selection]["value"]
            for r in recent if selection in r.metrics
        }

        def judge(r: Record) -> float:
            return judged.get((r.row, r.scale, r.configuration_hash, r.seed), math.inf)

        by_row = {row: [r for r in split if r.row == row] for row in dict.fromkeys(r.row for r in split)}
        for row, runs in by_row.items():
            if not judged or (len(runs) > 1 and min(map(judge, runs)) == math.inf):
                raise ValueError(f"{row}: expected records of {selection} to choose a run by, got none")
        split = [min(runs, key=judge) for runs in by_row.values()]
    return split, kinds[0]


def with_points(records: Sequence[Record], metric: str) -> list[Record]:
    """Those in which a metric is split up; of several configurations of a row the last counts, as in reports."""
    split = [record for record in records if record.points(metric)]
    last = {record.row: record.configuration_hash for record in split}
    return [record for record in split if record.configuration_hash == last[record.row]]


def values_of(records: Sequence[Record], metric: str) -> dict[str, dict[float, list[float]]]:
    """By row, in the order of the records, and by point of a metric that is split up, the values of all seeds."""
    found: dict[str, dict[float, list[float]]] = {}
    for record in with_points(records, metric):
        for x, y in record.points(metric):
            found.setdefault(record.row, {}).setdefault(x, []).append(y)
    return found


def _draw_lengths(
    axes: Any, records: Sequence[Record], metric: str, rows: Mapping[str, str], looks: Mapping[str, Any]
) -> dict[str, Any]:
    """One curve for each row; rows: its name in the legend; looks: by name, as the curves that come back."""
    drawn, found = {}, values_of(records, metric)
    for row, name in rows.items():
        values = found.get(row, {})
        at = sorted(values)
        (line,) = axes.plot(at, [statistics.fmean(values[x]) for x in at], label=name, **looks[name])
        drawn[name] = line
        if any(len(values[x]) > 1 for x in at):
            low, high = [min(values[x]) for x in at], [max(values[x]) for x in at]
            axes.fill_between(at, low, high, color=line.get_color(), alpha=0.2)
    axes.grid(alpha=0.3)
    return drawn


def _look(number: int) -> dict[str, str]:
    """A colour, and a line that tells it from the one ten before, for matplotlib has ten colours."""
    return {"color": f"C{number}", "linestyle": DASHES[number // 10 % len(DASHES)]}


def log_panels(panels: Sequence[tuple[str, Curves]], title: str) -> Figure:
    """One panel for each (label of the vertical axis, curves), both axes logarithmic, with one legend and one
    colour for each name."""
    figure = Figure(figsize=(5.0 * len(panels), 3.8))
    names = list(dict.fromkeys(name for _, curves in panels for name in curves))
    handles: dict[str, Any] = {}
    for axes, (label, curves) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for name, points in curves.items():
            (handles[name],) = axes.plot(
                list(points), list(points.values()), **_look(names.index(name)), marker="o", markersize=3
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("length")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    figure.suptitle(title, fontsize="medium")
    figure.tight_layout()
    shown = [handles[name] for name in names]
    figure.legend(shown, names, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4)
    return figure
