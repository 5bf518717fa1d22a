"""A finished cell as records: its measurements with what is needed to make them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqstruct.bridge import logs
from seqstruct.data.files import sha256
from seqstruct.data.own import about
from seqstruct.harness.measurements import read_log
from seqstruct.harness.provenance import machine, versions
from seqstruct.harness.records import Record
from seqstruct.scoring.measurement import Measurement


def make_records(
    measurements: Sequence[Measurement], *, data: Path | None, cell: Path, steps: Sequence[Mapping[str, Any]],
    paper: str, table: str, row: str, seed: int, scale: str, dataset: str, configuration: str, command: str,
) -> list[Record]:
    """A record for each table that a measurement stands in.

    data: the prepared folder, whose files are checksummed.  cell: the folder with the logs of trainings.  steps: what
    each finished step took (kind, log, seconds, peak_memory), none where the commands were typed: seconds are then
    those of the logs and the peak of memory is 0.  A command that trains by itself (kind step, with train.log in the
    cell) counts by its memory and the seconds of that log.  Trainings that other cells take too (kind shared) count
    where there are no others, and as an ensemble if they are several.  The rest is as in `Record`.
    Raises ValueError if a table would have a metric twice, or data is no folder.
    """
    own = [step for step in steps if step["kind"] == "train"]
    trained = own or [step for step in steps if step["kind"] == "shared"]
    names = [step["log"] for step in trained] or [p.name for p in [cell / "train.log"] if p.exists()]
    texts = [read_log(cell / name) for name in names]
    seconds = sum(step["seconds"] for step in trained) or sum(logs.seconds(lines) or 0.0 for lines in texts)
    sizes = [logs.parameters(lines) for lines in texts]
    ran = trained or [step for step in steps if names and step["kind"] == "step"]
    common = {
        "paper": paper, "row": row, "seed": seed, "scale": scale,
        "dataset": "; ".join(filter(None, (dataset, about(data) if data else ""))),
        "configuration_hash": configuration, "data_checksums": checksums(data), "command": command,
        "parameters": sizes[-1] if own or len(sizes) == 1 else sum(filter(None, sizes)) or None, "seconds": seconds,
        "peak_memory": max((int(step["peak_memory"]) for step in ran), default=0),
        "versions": versions(), "machine": machine(),
    }
    tables: dict[str, dict[str, Any]] = {}
    for m in measurements:
        metrics = tables.setdefault(m.table or table, {})
        if m.metric in metrics:
            raise ValueError(f"expected {m.metric} once for table {m.table or table}, got it again: {m.value:g}")
        metrics[m.metric] = m.entry()
    return [Record(table=name, metrics=metrics, **common) for name, metrics in tables.items()]


def checksums(data: Path | None) -> dict[str, str]:
    """SHA-256 of every file below a folder, by its name there.  Raises ValueError if there is no such folder."""
    if data is None:
        return {}
    if not data.is_dir():
        raise ValueError(f"{data}: expected the folder of the prepared data, found none")
    return {str(path.relative_to(data)): sha256(path) for path in sorted(data.rglob("*")) if path.is_file()}
