"""Records: one JSON line for each finished run, with its numbers, in `recipes/<paper>/records/<table>.jsonl`."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Mapping, Sequence

from seqstruct.data.files import atomic_write, locked

PAPERS = (
    "stack_attention", "structured_attention", "peng_thesis", "nmt_lectures", "flare", "abilities", "generalisation",
    "published_sizes",
)
SCALES = ("smoke", "small", "paper")
OPTIONAL = ("machine",)
DIRTY = "-dirty"  # follows a commit that the code differed from


@dataclass(frozen=True)
class Record:
    """The numbers of one run that stand in one table, with what is needed to make them again.

    table: as the source numbers it ("2", "6.5", "figure-2").  row: the row's name in the recipe and in paper.json.
    metrics: by name {"value": finite, "unit": name}, at least one; where it is split up also {"axis": name, "points":
    [[x, value], ...]}; with the axis "seed" the numbers of several seeds that were trained as one, and the value their
    mean.  dataset: one line on the data used, with what departs from the published set.
    configuration_hash: hexadecimal digest of all settings, the seed apart.  data_checksums: SHA-256 by file name.
    parameters: of the model, or None where no model was trained.  seconds: of training, interruptions left out.
    peak_memory: bytes resident at most in the training process.  versions: by name of package.
    machine: processor, instructions, threads, blas and kernels (see `provenance.machine`); empty in records that were
    made before these were noted.
    """

    paper: str
    table: str
    row: str
    metrics: Mapping[str, Mapping[str, Any]]
    seed: int
    scale: str
    dataset: str
    configuration_hash: str
    data_checksums: Mapping[str, str]
    parameters: int | None
    seconds: float
    peak_memory: int
    versions: Mapping[str, str]
    command: str
    machine: Mapping[str, str] = field(default_factory=dict)

    @property
    def dirty(self) -> bool:
        """Whether the code that made it differed from the commit that it names.

        Of a record that names no machine this is not known, and False: until records named it, "-dirty" stood where
        nothing but records differed, those of the runs before it.
        """
        return bool(self.machine) and self.versions.get("commit", "").endswith(DIRTY)

    def __post_init__(self) -> None:
        for name in ("table", "row", "dataset", "configuration_hash", "command"):
            _expect(isinstance(getattr(self, name), str), name, "a string", getattr(self, name))
        _expect(re.fullmatch(r"\w[\w.-]*", self.table) is not None, "table", "a name for a file", self.table)
        _expect(isinstance(self.metrics, Mapping), "metrics", "an object", self.metrics)
        for name in ("data_checksums", "versions", "machine"):
            found = getattr(self, name)
            strings = isinstance(found, Mapping) and all(isinstance(value, str) for value in found.values())
            _expect(strings, name, "an object of strings", found)
        for name in ("seed", "peak_memory"):
            _expect(_is_number(getattr(self, name), int), name, "an integer", getattr(self, name))
        _expect(_is_finite(self.seconds), "seconds", "a finite number", self.seconds)
        _expect(bool(self.metrics), "metrics", "at least one", self.metrics)
        for name, metric in self.metrics.items():
            _check_metric(name, metric)
        _expect(self.parameters is None or _is_number(self.parameters, int), "parameters", "an integer or null",
                self.parameters)
        _expect(self.paper in PAPERS, "paper", "one of " + ", ".join(PAPERS), self.paper)
        _expect(self.scale in SCALES, "scale", "one of " + ", ".join(SCALES), self.scale)

    def value(self, metric: str) -> float | None:
        """Of one metric; None where the run has no such."""
        return self.metrics[metric]["value"] if metric in self.metrics else None

    def points(self, metric: str) -> Sequence[Sequence[float]]:
        """The pairs that a metric is split up into; none where it is not, or where the run has no such."""
        return self.metrics.get(metric, {}).get("points", ())

    @classmethod
    def from_json(cls, line: str) -> Record:
        """The record in one line.  Raises ValueError if it is no JSON object with exactly a record's keys."""
        loaded = json.loads(line)
        if not isinstance(loaded, dict):
            raise ValueError(f"expected a JSON object, got {type(loaded).__name__}")
        known = {f.name for f in fields(cls)}
        missing = sorted(known - set(OPTIONAL) - loaded.keys())
        unknown = sorted(loaded.keys() - known)
        if missing or unknown:
            raise ValueError("; ".join(
                f"{kind}: {', '.join(names)}"
                for kind, names in (("missing keys", missing), ("unknown keys", unknown)) if names
            ))
        return cls(**loaded)

    def to_json(self) -> str:
        """One line without its newline; what is optional and empty is left out."""
        content = {name: value for name, value in asdict(self).items() if value or name not in OPTIONAL}
        return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _is_number(found: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(found, kind) and not isinstance(found, bool)


def _is_finite(found: object) -> bool:
    return _is_number(found, (int, float)) and abs(found) <= sys.float_info.max  # type: ignore[arg-type]


def _check_metric(name: str, metric: object) -> None:
    """Raises ValueError unless it is {"value", "unit"}, or {"value", "unit", "axis", "points"}, of the right kinds."""
    whole = isinstance(metric, Mapping) and metric.keys() in ({"value", "unit"}, {"value", "unit", "axis", "points"})
    _expect(whole, name, "an object with value and unit, or also axis and points", metric)
    assert isinstance(metric, Mapping)
    _expect(_is_finite(metric["value"]), f"{name}: value", "a finite number", metric["value"])
    _expect(isinstance(metric["unit"], str), f"{name}: unit", "a string", metric["unit"])
    if "axis" in metric:
        points = metric["points"]
        _expect(isinstance(metric["axis"], str) and bool(metric["axis"]), f"{name}: axis", "a name", metric["axis"])
        pairs = isinstance(points, (list, tuple)) and points and all(
            isinstance(p, (list, tuple)) and len(p) == 2 and all(map(_is_finite, p)) for p in points)
        _expect(bool(pairs), f"{name}: points", "pairs of finite numbers", points)


def _expect(condition: bool, name: str, expected: str, found: object) -> None:
    if not condition:
        raise ValueError(f"{name}: expected {expected}, got {found!r}")


def read_records(path: str | os.PathLike) -> list[Record]:
    """All records of a file, in its order; none if there is no such file.

    Raises ValueError naming file and line if a line is not a record.
    """
    path = Path(path)
    if not path.exists():
        return []
    records = []
    with open(path, "rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                records.append(Record.from_json(line.decode("utf-8").rstrip("\r\n")))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path}, line {number}: not a record: {error}") from None
    return records


def read_folder(folder: str | os.PathLike) -> list[Record]:
    """The records of every .jsonl file in a folder, files in the order of their names."""
    return [record for path in sorted(Path(folder).glob("*.jsonl")) for record in read_records(path)]


def append_records(folder: str | os.PathLike, records: Sequence[Record]) -> None:
    """Append records to `<table>.jsonl` in a folder; readers see the old file or the new one, never a part.

    Processes that append at the same time wait for each other.  Raises OSError with the old file whole if the new one
    cannot be written (a full disk), ValueError if what stands there already is malformed.
    """
    folder = Path(os.path.realpath(folder))  # a link may lead to what is not there yet
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        for table in sorted({record.table for record in records}):
            path = folder / f"{table}.jsonl"
            read_records(path)
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            if before and not before.endswith("\n"):
                before += "\n"
            new = [record.to_json() + "\n" for record in records if record.table == table]
            try:
                with atomic_write(path) as stream:
                    stream.write(before + "".join(new))
            except OSError as error:
                raise OSError(
                    error.errno, f"{error.strerror}; {len(new)} new records are not in it, the old ones are", str(path)
                ) from error


def latest(records: Sequence[Record]) -> list[Record]:
    """What counts of each run: a run made again replaces the numbers of the one before, those that it measured.

    A run is paper, table, row, seed, scale and configuration; an earlier record of it keeps the metrics that no later
    one has, such as speeds measured apart, and is left out where none is left.
    """
    kept, taken = [], set()
    for r in reversed(records):
        run = (r.paper, r.table, r.row, r.seed, r.scale, r.configuration_hash)
        metrics = {name: metric for name, metric in r.metrics.items() if (run, name) not in taken}
        taken |= {(run, name) for name in metrics}
        if metrics:
            kept.append(replace(r, metrics=metrics))
    return kept[::-1]


def of_each_seed(records: Sequence[Record]) -> list[Record]:
    """The records with those of several seeds taken apart, one for each seed."""
    apart = []
    for r in records:
        by_seed: dict[int, dict[str, Mapping[str, Any]]] = {}
        for name, metric in r.metrics.items():
            if metric.get("axis") == "seed":
                for seed, value in metric["points"]:
                    by_seed.setdefault(int(seed), {})[name] = {"value": value, "unit": metric["unit"]}
            else:
                by_seed.setdefault(r.seed, {})[name] = metric
        apart += [replace(r, seed=seed, metrics=metrics) for seed, metrics in by_seed.items()]
    return apart


def format_value(value: float | None) -> str:
    """A number for people: four digits, whole numbers with their thousands apart; nothing for None."""
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) >= 1000:
        return f"{int(value):,}"
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
