"""The numbers of a cell: read from logs of fairseq and from files of `seqstruct`'s own commands, to be recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seqstruct.harness import logs

_REQUEST = re.compile(
    r"(?:(?P<table>[\w.-]+):)?(?P<metric>\w+)\[(?P<unit>[^\]]*)\]=(?P<file>[^:]+):(?P<key>\w+)(?P<best>@best)?(?:/(?P<axis>.+))?"
)


class Measurement(NamedTuple):
    """One number that an evaluation gives.

    axis, points: the number split up along something (string length), as pairs (x, value); empty if it is not.
    Where several seeds train as one, the axis is "seed", the points are the seeds' numbers and the value their mean.
    table: where it is recorded, if not in the cell's table.
    """

    metric: str
    value: float
    unit: str
    axis: str = ""
    points: Sequence[tuple[float, float]] = ()
    table: str = ""

    def entry(self) -> dict[str, Any]:
        """As it stands under its name among the metrics of a record."""
        split = {"axis": self.axis, "points": [list(point) for point in self.points]} if self.points else {}
        return {"value": self.value, "unit": self.unit, **split}


def read(folder: Path, requests: Sequence[str]) -> list[Measurement]:
    """What `record` is asked for, files taken from `folder`.

    A request is FILE.json, a list of measurements as `write` makes it, or METRIC[UNIT]=FILE:KEY, the last value of a
    statistic in a log of fairseq with `log_format: json`; KEY@best is that of the checkpoint that validation chose, and
    the key "parameters" is the number of the model's.  KEY/AXIS adds the points of the statistics KEY_0, KEY_1, ... of
    the same line.  Where FILE is such a list, KEY is the name of a measurement in it.  TABLE: in front names another
    table than the cell's.
    Raises ValueError naming a request that finds nothing.
    """
    found = []
    for request in requests:
        parts = _REQUEST.fullmatch(request)
        if parts is None:
            if not request.endswith(".json"):
                raise ValueError(f"expected METRIC[UNIT]=FILE:KEY or FILE.json, got {request!r}")
            loaded = json.loads((folder / request).read_text(encoding="utf-8"))
            found += [Measurement(**one) for one in loaded]
            continue
        if parts["file"].endswith(".json"):
            found.append(_renamed(folder / parts["file"], parts))
            continue
        lines = (folder / parts["file"]).read_text(encoding="utf-8").splitlines()
        said = _statistics(lines, parts["key"], best=parts["best"] is not None)
        if parts["key"] not in said:
            raise ValueError(f"{folder / parts['file']}: it says no {parts['key']}")
        found.append(Measurement(
            parts["metric"], said[parts["key"]], parts["unit"], parts["axis"] or "",
            _points(said, parts["key"]) if parts["axis"] else (), parts["table"] or "",
        ))  # fmt: skip
    return found


def _renamed(path: Path, parts: re.Match[str]) -> Measurement:
    """A measurement of a list under another name, in another table."""
    listed = [Measurement(**one) for one in json.loads(path.read_text(encoding="utf-8"))]
    one = next((m for m in listed if m.metric == parts["key"]), None)
    if one is None:
        raise ValueError(f"{path}: it says no {parts['key']}")
    return one._replace(metric=parts["metric"], unit=parts["unit"], table=parts["table"] or one.table)


def _points(said: Mapping[str, float], key: str) -> list[tuple[float, float]]:
    numbered = {name.removeprefix(f"{key}_"): value for name, value in said.items() if name.startswith(f"{key}_")}
    return sorted((float(number), value) for number, value in numbered.items() if number.isdigit())


def _statistics(lines: Sequence[str], key: str, *, best: bool) -> Mapping[str, float]:
    """The last line that has a statistic; of those of the chosen checkpoint's epoch, if it is the best one's."""
    if key == "parameters":
        found = logs.parameters(lines)
        return {} if found is None else {key: float(found)}
    entries = [entry.statistics for entry in logs.parse_lines(lines)]
    said = [statistics for statistics in entries if key in statistics]
    if best and said:
        chosen = best_epoch(entries)
        said = [statistics for statistics in said if statistics.get("epoch") == chosen]
    return said[-1] if said else {}


def best_epoch(entries: Sequence[dict[str, float]]) -> float | None:
    """The epoch of the checkpoint that validation chose: the last one at which the selecting statistic is its best."""
    validated = [(name, s) for s in entries for name in s if name.startswith("valid_best_")]
    if not validated:
        # a first validation has no best one before it
        first = [s["epoch"] for s in entries if any(name.startswith("valid_") for name in s)]
        return first[-1] if first else None
    name = validated[-1][0]
    reached, statistic = validated[-1][1][name], "valid_" + name.removeprefix("valid_best_")
    return next((s["epoch"] for s in reversed(entries) if s.get(statistic) == reached), None)


def write(path: str | Path, measurements: Sequence[Measurement]) -> None:
    """Write measurements as JSON to a file that appears only when it is whole."""
    from seqstruct.data.files import atomic_write

    with atomic_write(Path(path)) as stream:
        json.dump([m._asdict() for m in measurements], stream, indent=1, allow_nan=False)
        stream.write("\n")
