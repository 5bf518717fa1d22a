"""The numbers of a cell: read from logs of fairseq and from files of `seqstruct`'s own commands, to be recorded."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from seqstruct.bridge import logs
from seqstruct.data.files import read_json, undamaged
from seqstruct.harness.cells import STEPS
from seqstruct.scoring.measurement import Measurement

_REQUEST = re.compile(
    r"(?:(?P<table>[\w.-]+):)?(?P<metric>\w+)\[(?P<unit>[^\]]*)\]=(?P<file>[^:]+):"
    r"(?P<power>2\^)?(?P<key>\w+)(?:@(?P<which>best|median))?(?:/(?P<axis>.+))?"
)


def read(folder: Path, requests: Sequence[str]) -> list[Measurement]:
    """What `record` is asked for, files taken from `folder`.

    A request is FILE.json, a list of measurements as `write` makes it, or METRIC[UNIT]=FILE:KEY, the last value of a
    statistic in a log of fairseq with `log_format: json`; KEY@best is that of the checkpoint that validation chose,
    KEY@median the median of all.  The key "parameters" is the number of the model's, "gpu_memory" the most GiB that a
    training took of its GPU; "sentences_per_second" and "tokens_per_second" are what fairseq-generate says of its
    speed.  KEY/AXIS adds the points of the statistics KEY_0, KEY_1, ... of the same line, KEY/epoch one for each epoch
    of the log.  2^KEY is the perplexity of a statistic in bits, of each point too.  Where FILE is JSON, KEY is one of
    an object, or the name of a measurement in a list; of steps.json, "mebibytes" of the cell's training, left out where
    the commands were typed, since nothing watched them.  TABLE: in front names another table than the cell's.  A file
    that is not in `folder` is taken from where this process runs; the values of FILE+FILE, not points, are added up.
    Raises ValueError naming a request that finds nothing, or a file that is damaged.
    """
    found = []
    for request in requests:
        parts = _REQUEST.fullmatch(request)
        if parts is None:
            table, _, name = request.rpartition(":")
            if not name.endswith(".json"):
                raise ValueError(f"expected METRIC[UNIT]=FILE:KEY or FILE.json, got {request!r}")
            path = _file(folder, name)
            found += [one._replace(table=table or one.table) for one in _measurements(path, read_json(path, list))]
            continue
        if parts["file"] == STEPS and not (folder / STEPS).exists():
            continue
        if parts["file"].endswith(".json"):
            found.append(_of_json(_file(folder, parts["file"]), parts))
            continue
        key, value, axis = parts["key"], 0.0, parts["axis"] or ""
        if axis and "+" in parts["file"]:
            raise ValueError(f"expected one FILE with KEY/{axis}, whose points are not added up, got {request!r}")
        for name in parts["file"].split("+"):
            path = _file(folder, name)
            lines = read_log(path)
            said = _statistics(lines, key, parts["which"])
            if key not in said:
                raise ValueError(f"{path}: it says no {key}")
            value += _raised(path, parts, said[key])
        points = _by_epoch(lines, key) if axis == "epoch" else _points(said, key) if axis else ()
        if axis and not points:
            raise ValueError(f"{path}: it says no points of {key} for {request!r}")
        points = points and [(x, _raised(path, parts, y)) for x, y in points]
        found.append(Measurement(parts["metric"], value, parts["unit"], axis, points, parts["table"] or ""))
    return found


def _raised(path: Path, parts: re.Match[str], number: float) -> float:
    """The number, or 2 to it where that is asked for."""
    if not parts["power"]:
        return number
    if number >= sys.float_info.max_exp:
        raise ValueError(f"{path}: 2^{parts['key']} is beyond float64: {parts['key']} is {number:g}")
    return 2**number


def _of_json(path: Path, parts: re.Match[str]) -> Measurement:
    """A number of an object, or a measurement of a list under another name, in another table."""
    if parts["power"] or parts["which"] or parts["axis"]:
        raise ValueError(f"{path}: expected a KEY alone, 2^KEY, KEY@ and KEY/ being of logs, got {parts[0]!r}")
    said = read_json(path, dict, list)
    if path.name == STEPS:
        took = next((step for step in said.values() if step["kind"] == "train"), None)
        said = {} if took is None else {"mebibytes": took["peak_memory"] / 2**20}
    if isinstance(said, dict):
        said = [{"metric": metric, "value": value, "unit": ""} for metric, value in said.items()]
    one = next((m for m in _measurements(path, said) if m.metric == parts["key"]), None)
    if one is None:
        raise ValueError(f"{path}: it says no {parts['key']}")
    return one._replace(metric=parts["metric"], unit=parts["unit"], table=parts["table"] or one.table)


def _measurements(path: Path, found: Sequence[Mapping[str, Any]]) -> list[Measurement]:
    with undamaged(path, TypeError):
        return [Measurement(**one) for one in found]


def read_log(path: Path) -> list[str]:
    """The lines of a log, bars of progress too.  Raises ValueError, naming the file, if it is not UTF-8."""
    with undamaged(path, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").splitlines()


def _file(folder: Path, name: str) -> Path:
    return folder / name if (folder / name).exists() or not Path(name).exists() else Path(name)


def require(folder: Path, conditions: Sequence[str]) -> None:
    """Conditions FILE:KEY<NUMBER on statistics, KEY as of `read`.  Raises ValueError for one that does not hold."""
    for condition in conditions:
        request, less, limit = condition.partition("<")
        try:
            bound = float(limit)
        except ValueError:
            raise ValueError(f"expected FILE:KEY<NUMBER, got {condition!r}") from None
        (found,) = read(folder, [f"required[]={request}"])
        if not found.value < bound:
            raise ValueError(f"no result: expected {condition}, got {found.value:g}, see {folder}")


def _points(said: Mapping[str, float], key: str) -> list[tuple[float, float]]:
    numbered = {name.removeprefix(f"{key}_"): value for name, value in said.items() if name.startswith(f"{key}_")}
    return sorted((float(number), value) for number, value in numbered.items() if number.isdigit())


def _by_epoch(lines: Sequence[str], key: str) -> list[tuple[float, float]]:
    """The last value of each epoch, of a training that went on too."""
    entries = (entry.statistics for entry in logs.parse_lines(lines))
    return sorted({s["epoch"]: s[key] for s in entries if key in s and "epoch" in s}.items())


def _statistics(lines: Sequence[str], key: str, which: str | None) -> Mapping[str, float]:
    """The last line that has a statistic; that of the chosen checkpoint if it is the best one's."""
    if key in ("parameters", "gpu_memory"):
        found = logs.parameters(lines) if key == "parameters" else logs.gpu_memory(lines)
        return {} if found is None else {key: float(found)}
    if key in ("sentences_per_second", "tokens_per_second"):
        return logs.generation_speed(lines)
    entries = [entry.statistics for entry in logs.parse_lines(lines)]
    said = [statistics for statistics in entries if key in statistics]
    if which == "median" and said:
        return {key: median(statistics[key] for statistics in said)}
    if which == "best" and said:
        chosen = best_validation(entries)
        if key.startswith("valid_"):
            # an epoch may have been validated more than once
            return {} if chosen is None else chosen
        said = [] if chosen is None else [s for s in said if s.get("epoch") == chosen["epoch"]]
    return said[-1] if said else {}


def best_validation(entries: Sequence[dict[str, float]]) -> dict[str, float] | None:
    """What was said of the chosen checkpoint: the last one at which the statistic that selects is its best."""
    validated = [(name, s) for s in entries for name in s if name.startswith("valid_best_")]
    if not validated:
        # a first validation has no best one before it
        first = [s for s in entries if any(name.startswith("valid_") for name in s)]
        return first[-1] if first else None
    name = validated[-1][0]
    reached, statistic = validated[-1][1][name], "valid_" + name.removeprefix("valid_best_")
    return next((s for s in reversed(entries) if s.get(statistic) == reached), None)
