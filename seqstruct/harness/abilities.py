"""The chart of abilities, read from its records: what each mechanism reaches on each task, and what that costs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seqstruct.attention import GROWTHS, Cost, get_attention
from seqstruct.attention.plan import read_items
from seqstruct.data.abilities.chart import CHART
from seqstruct.data.abilities.tasks import FAMILIES
from seqstruct.harness.paper import paper_folder, read_tables
from seqstruct.harness.records import Record, latest, read_records

PAPER = "abilities"
RULE = "simple rule"
LONG = "_long"
TASKS = tuple(CHART)
# models that are no plan of attention
RECURRENT = {
    "LSTM+Sup": Cost("quadratic", "linear"), "LSTM+Nd": Cost("cubic", "quadratic"),
    **dict.fromkeys(("LSTM", "GRU", "RRNN"), Cost("linear", "constant")),
}


@dataclass(frozen=True)
class Reached:
    """What a row reaches on a task, percent of targets by seed: at the lengths of training, and beyond.

    broken: why there are no numbers, where training broke at every rate.
    """

    trained: Sequence[float] = ()
    beyond: Sequence[float] = ()
    broken: str = ""

    def mean(self, beyond: bool) -> float | None:
        """Over seeds; None where there are no numbers."""
        values = self.beyond if beyond else self.trained
        return statistics.fmean(values) if values else None

    def deviation(self, beyond: bool) -> float | None:
        """The sample standard deviation over seeds, None below two."""
        values = self.beyond if beyond else self.trained
        return statistics.stdev(values) if len(values) > 1 else None


@dataclass(frozen=True)
class Chart:
    """rows: of each row what it reaches by task, in the table's order; one not yet run has no tasks.

    rule: likewise, of the best simple rule; no tasks where it was not run.
    """

    rows: Mapping[str, Mapping[str, Reached]]
    rule: Mapping[str, Reached] = field(default_factory=dict)

    def skill(self, row: str, task: str, beyond: bool) -> float | None:
        """How much of the way from the simple rule to no error a row goes: 1 is perfect, 0 no better than the rule.

        None where the cell or the rule was not run or broke, or the rule has no error itself.
        """
        found, rule = self.rows[row].get(task), self.rule.get(task)
        value, least = (None if one is None else one.mean(beyond) for one in (found, rule))
        return None if value is None or least in (None, 100) else (value - least) / (100 - least)

    def missing(self, tasks: Sequence[str]) -> list[str]:
        """The rows that lack one of these tasks."""
        return [row for row, found in self.rows.items() if any(task not in found for task in tasks)]


def read_chart(records: Path | None = None, scale: str = "small") -> Chart:
    """From a folder of records (default: those of the recipe).  Raises ValueError if there is none of the scale."""
    folder = paper_folder(PAPER)
    found = [r for r in read_records((records or folder / "records") / f"{PAPER}.jsonl") if r.scale == scale]
    if not found:
        raise ValueError(f"no records of {PAPER} at scale {scale}; recipes/abilities/abilities.sh makes them")
    (table,) = [table for table in read_tables(folder) if table.name == PAPER]
    return chart_of(found, [entry.row for entry in table.published])


def chart_of(records: Sequence[Record], rows: Sequence[str]) -> Chart:
    """rows: the table's, in their order; those of the records that are not among them come last."""
    found: dict[str, dict[str, Reached]] = {row: {} for row in rows}
    for record in latest(records):
        cells = found.setdefault(record.row, {})
        for task in TASKS:
            trained, beyond = (_values(record, task + end) for end in ("", LONG))
            broken = record.metrics.get(f"{task}_broken", {}).get("unit", "")
            if trained or broken:
                cells[task] = Reached(trained, beyond, "" if trained else broken)
    rule = found.pop(RULE, {})
    return Chart(found, rule)


def _values(record: Record, metric: str) -> list[float]:
    value = record.value(metric)
    return [] if value is None else [v for _, v in record.points(metric)] or [value]


def cost_of(row: str) -> Cost | None:
    """How a row grows with the text, of a plan the worst of its mechanisms; None where that is not declared."""
    for name, cost in RECURRENT.items():
        if row.partition(" ")[0] == name:
            return cost
    costs = [get_attention(name).cost for name, _ in read_items(row, row)]
    if None in costs:
        return None
    return Cost(*(max(growths, key=GROWTHS.index) for growths in zip(*costs, strict=True)))


def tasks_named(names: Sequence[str]) -> list[str]:
    """Tasks by their names or those of their families, each once.  Raises ValueError for another name."""
    found: dict[str, None] = {}
    for name in names:
        chosen = [task for task in FAMILIES.get(name, (name,)) if task in TASKS]
        if not chosen:
            raise ValueError(f"no task is called {name!r}; there are: {', '.join(dict.fromkeys([*FAMILIES, *TASKS]))}")
        found.update(dict.fromkeys(chosen))
    return list(found)


@dataclass(frozen=True)
class Answer:
    """Which rows to take.  lines: name, score, an entry for each task, the two growths; the best first, the simple rule
    last.  sentences: what is left out, and why."""

    lines: Sequence[Sequence[str]]
    sentences: Sequence[str]


def answer_of(
    chart: Chart, tasks: Sequence[str], *, cost: str, memory: str, beyond: bool, top: int | None = None
) -> Answer:
    """The rows that went furthest from the simple rule on these tasks, in the mean.

    cost, memory: the greatest growth of training and of the state, of `GROWTHS`.  beyond: whether what stands beyond
    the lengths of training is scored.  top: how many at most.  A row that broke on a task went nowhere there.
    Raises ValueError if the simple rule was not run on a task.
    """
    for task in tasks:
        if task not in chart.rule:
            raise ValueError(f"the simple rule of {task} is not in the records; run its row of the recipe first")
    tasks = sorted(tasks, key=TASKS.index)
    missing = chart.missing(tasks)
    fitting, dear = [], 0
    for row in chart.rows:
        found = cost_of(row)
        fits = found is not None and all(
            GROWTHS.index(have) <= GROWTHS.index(most) for have, most in zip(found, (cost, memory), strict=True)
        )
        dear += not fits
        if fits and row not in missing:
            fitting.append((statistics.fmean(chart.skill(row, task, beyond) or 0.0 for task in tasks), row, found))
    fitting.sort(key=lambda one: -one[0])
    lines = [
        [row, f"{100 * score:.0f}", *(entry(chart.rows[row][task]) for task in tasks), *found]
        for score, row, found in fitting[:top]
    ]
    lines.append([RULE, "0", *(entry(chart.rule[task]) for task in tasks), "", ""])
    sentences = [] if fitting else ["No mechanism of such a cost has been run on all of these tasks."]
    if dear:
        sentences.append(f"{dear} of {len(chart.rows)} rows cost more.")
    if missing:
        sentences.append(f"Not yet run on all of these tasks: {', '.join(missing)}.")
    return Answer(lines, sentences)


def entry(reached: Reached) -> str:
    """Accuracies with deviations, at the lengths of training and beyond; or why there are none."""
    if reached.broken:
        return f"broke: {reached.broken}"
    parts = []
    for beyond in (False, True):
        value, deviation = reached.mean(beyond), reached.deviation(beyond)
        parts.append(("" if value is None else f"{value:.1f}") + ("" if deviation is None else f" ± {deviation:.1f}"))
    return " | ".join(filter(None, parts))
