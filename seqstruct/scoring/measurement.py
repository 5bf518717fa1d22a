"""A number that an evaluation gives, and files of them for `seqstruct record`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seqstruct.data.files import write_json


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


def write(path: str | Path, measurements: Sequence[Measurement]) -> None:
    write_json(path, [m._asdict() for m in measurements], allow_nan=False)
