"""Records: one JSON line for each number that a finished run gave, in `recipes/<paper>/records/<table>.jsonl`."""

from __future__ import annotations

import fcntl
import json
import math
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from seqstruct.data.files import atomic_write

PAPERS = ("stack_attention", "structured_attention", "peng_thesis", "nmt_lectures")
SCALES = ("smoke", "small", "paper")
OPTIONAL = ("series", "machine")
DIRTY = "-dirty"  # follows a commit that the code differed from


@dataclass(frozen=True)
class Record:
    """One number of one run, with what is needed to make it again.

    table: as the source numbers it ("2", "6.5", "figure-2").  row: the row's name in the recipe and in paper.json.
    value: finite, in `unit`.  dataset: one line on the data used, with what departs from the published set.
    configuration_hash: hexadecimal digest of all settings, the seed apart.  data_checksums: SHA-256 by file name.
    parameters: of the model, or None where no model was trained.  seconds: of training, interruptions left out.
    peak_memory: bytes resident at most in the training process.  versions: by name of package.
    series: optional, the metric split up, as {"axis": name, "points": [[x, value], ...]}; with the axis "seed" the
    numbers of several seeds that were trained as one, and `value` their mean.
    machine: processor, instructions, threads, blas and kernels (see `provenance.machine`); empty in records that were
    made before these were noted.
    """

    paper: str
    table: str
    row: str
    metric: str
    value: float
    unit: str
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
    series: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)

    @property
    def dirty(self) -> bool:
        """Whether the code that made it differed from the commit that it names."""
        return self.versions.get("commit", "").endswith(DIRTY)

    def __post_init__(self) -> None:
        for name in ("table", "row", "metric", "unit", "dataset", "configuration_hash", "command"):
            _expect(isinstance(getattr(self, name), str), name, "a string", getattr(self, name))
        for name in ("data_checksums", "versions", "series", "machine"):
            _expect(isinstance(getattr(self, name), Mapping), name, "an object", getattr(self, name))
        for name in ("seed", "peak_memory"):
            _expect(_is_number(getattr(self, name), int), name, "an integer", getattr(self, name))
        for name in ("value", "seconds"):
            found = getattr(self, name)
            _expect(_is_number(found, (int, float)) and math.isfinite(found), name, "a finite number", found)
        _expect(self.parameters is None or _is_number(self.parameters, int), "parameters", "an integer or null",
                self.parameters)
        _expect(self.paper in PAPERS, "paper", "one of " + ", ".join(PAPERS), self.paper)
        _expect(self.scale in SCALES, "scale", "one of " + ", ".join(SCALES), self.scale)

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
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            try:
                records.append(Record.from_json(line.rstrip("\n")))
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
    with _locked(folder):
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


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's advisory lock (the folder itself is locked, so no lock file is left behind)."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def latest(records: Sequence[Record]) -> list[Record]:
    """Only the last record of each run and metric: a run made again replaces the one before."""
    kept: dict[tuple, Record] = {}
    for r in records:
        key = (r.paper, r.table, r.row, r.metric, r.seed, r.scale, r.configuration_hash)
        kept.pop(key, None)
        kept[key] = r
    return list(kept.values())


def of_each_seed(records: Sequence[Record]) -> list[Record]:
    """The records with those of several seeds taken apart, one for each seed."""
    apart = []
    for r in records:
        if r.series.get("axis") == "seed":
            apart += [replace(r, seed=int(seed), value=value, series={}) for seed, value in r.series["points"]]
        else:
            apart.append(r)
    return apart


def format_value(value: float | None) -> str:
    """A number for people: four digits, whole numbers with their thousands apart; nothing for None."""
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) >= 1000:
        return f"{int(value):,}"
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
