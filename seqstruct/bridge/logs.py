"""What fairseq writes with `--log-format json`: statistics by tag, read line by line."""

from __future__ import annotations

import json
import re
from typing import Iterable, NamedTuple

# fairseq-train, and what hydra makes of it
_LINE = re.compile(r"(?:\| (?:INFO|WARNING) \| |\[)(?P<tag>[\w.]+)(?: \| |\]\[(?:INFO|WARNING)\] - )(?P<content>\{.*)$")
_SPEED = re.compile(
    r"Translated [\d,]+ sentences .*?\((?P<sentences_per_second>[\d.]+) sentences/s, "
    r"(?P<tokens_per_second>[\d.]+) tokens/s"
)
_PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")
_GPU = re.compile(r"total memory = ([\d.]+) GB")


class LogEntry(NamedTuple):
    """One line of statistics.  tag: "train_inner" (within an epoch), "train" or the name of a validation set."""

    tag: str
    statistics: dict[str, float]


def parse_line(line: str) -> LogEntry | None:
    """The statistics in a line, values that are numbers alone; None if it holds none."""
    found = _LINE.search(line)
    if found is None:
        return None
    try:
        content = json.loads(found["content"])
    except json.JSONDecodeError:
        return None
    numbers = {name: _number(text) for name, text in content.items()}
    return LogEntry(found["tag"], {name: number for name, number in numbers.items() if number is not None})


def _number(text: object) -> float | None:
    try:
        return float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def parse_lines(lines: Iterable[str]) -> list[LogEntry]:
    """The statistics in all lines, in their order."""
    return [entry for line in lines if (entry := parse_line(line)) is not None]


def parameters(lines: Iterable[str]) -> int | None:
    """The number of parameters that fairseq-train reported last, or None."""
    total = None
    for line in lines:
        if found := _PARAMETERS.search(line):
            total = int(found[1].replace(",", ""))
    return total


def gpu_memory(lines: Iterable[str]) -> float | None:
    """The most GiB that tensors of a training took of its GPU between two lines of statistics, to 0.1, or None."""
    total, free = None, []
    for line in lines:
        if found := _GPU.search(line):
            total = float(found[1])
        if (entry := parse_line(line)) is not None and "gb_free" in entry.statistics:
            free.append(entry.statistics["gb_free"])
    return round(total - min(free), 1) if free and total is not None else None


def generation_speed(lines: Iterable[str]) -> dict[str, float]:
    """What fairseq-generate said last of its speed, without loading and writing, or nothing.

    sentences_per_second, tokens_per_second: of wall clock.
    """
    found = [match for line in lines if (match := _SPEED.search(line))]
    return {name: float(text) for name, text in found[-1].groupdict().items()} if found else {}


def seconds(lines: Iterable[str]) -> float | None:
    """Wall-clock seconds of training, over all the processes that took part in it one after the other, or None."""
    counts = {"train_inner": "wall", "train": "train_wall"}
    found = [entry.statistics.get(counts.get(entry.tag, "")) for entry in parse_lines(lines)]
    walls = [wall for wall in found if wall is not None]
    ends = [wall for wall, after in zip(walls, [*walls[1:], 0.0], strict=False) if after < wall]
    return sum(ends) if ends else None
