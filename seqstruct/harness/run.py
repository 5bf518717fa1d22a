"""One cell, run: its folder, its data, its training, and what is written when it is finished."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import zipfile
from copy import copy
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import seqstruct
from seqstruct.data.files import atomic_write, new_folder, sha256
from seqstruct.harness import logs
from seqstruct.harness.process import Usage, fairseq, run_command
from seqstruct.harness.progress import Progress
from seqstruct.harness.provenance import machine, versions
from seqstruct.harness.recipe import Cell, Measurement, Recipe
from seqstruct.harness.records import Record, append_records
from seqstruct.ops.compiled import VARIABLE

PLUGIN = Path(seqstruct.__file__).parent
# fairseq and torch keep state in their modules, so evaluations in this process take turns
_evaluating = threading.Lock()


class Run:
    """One cell of a recipe in its folder under `runs`, named after row, scale, configuration and seed.

    source: folder with data already on disk, or None.  The folder holds train.log (all that fairseq-train printed,
    statistics as JSON), output.log (of other commands), checkpoints/, trained.json and done.json; a changed
    configuration has another folder, so what lies in one always belongs together.
    """

    def __init__(
        self,
        recipe: Recipe,
        cell: Cell,
        runs: str | os.PathLike,
        *,
        progress: Progress,
        source: str | os.PathLike | None = None,
        max_minutes: float | None = None,
    ):
        self.recipe = recipe
        self.cell = cell
        self.progress = progress
        self.source = None if source is None else Path(source)
        self.configuration_hash = recipe.configuration_hash(cell)
        self.threads = recipe.threads[cell.scale]
        self.max_minutes = recipe.max_minutes[cell.scale] if max_minutes is None else max_minutes
        self.root = Path(runs) / recipe.paper
        name = f"{slug(cell.row)}-{cell.scale}-{self.configuration_hash[:8]}-seed{cell.seed}"
        self.folder = self.root / slug(recipe.table) / name

    @property
    def done(self) -> bool:
        """Whether the cell was trained, evaluated and recorded."""
        return (self.folder / "done.json").exists()

    @property
    def parameters(self) -> int:
        """How many parameters the trained model has.  Raises OSError before it is trained."""
        return read_json(self.folder / "trained.json")["parameters"]

    @property
    def peak_memory(self) -> int:
        """Bytes resident at most while it was trained.  Raises OSError before it is trained."""
        return read_json(self.folder / "trained.json")["peak_memory"]

    def raw_data(self, name: str) -> Path | None:
        """The folder of raw data on disk: the one given (--from), or data/`name` of the reference folder.

        The reference folder is named by SEQSTRUCT_REFERENCE; None where neither is there, and data are downloaded.
        """
        if self.source is not None:
            return self.source
        reference = os.environ.get("SEQSTRUCT_REFERENCE")
        folder = Path(reference) / "data" / name if reference else None
        return folder if folder is not None and folder.is_dir() else None

    def prepared(self, name: str, make: Callable[[Path], None]) -> Path:
        """The folder `name` among the paper's data, made by `make(folder)` unless it is there.

        It is made beside and renamed, so it is whole or absent; two runs may ask for it at once.
        """
        folder = self.root / "data" / slug(name)
        if folder.exists():
            return folder
        try:
            with new_folder(folder) as made:
                make(made)
        except (OSError, ValueError):
            if not folder.exists():
                raise
        return folder

    def command(self, words: Sequence[str | os.PathLike], log: str = "output.log") -> Usage:
        """Run a command with this run's number of threads; what it prints is appended to a log in the folder."""
        return run_command(words, self.folder / log, threads=self.threads)

    def fairseq_train(self, data: str | os.PathLike, options: Sequence[str], *, epochs: int) -> Path:
        """fairseq-train with the plugin on a data folder; the best checkpoint's path comes back.

        Added to the options: the plugin, seed, save folder, logs, exact resumption, the limits of epochs and time, and
        the CPU at scales smoke and small.  A training cut short goes on from its last whole checkpoint; a finished one
        is not run again.
        """
        checkpoints = self.folder / "checkpoints"
        trained = self.folder / "trained.json"
        best = checkpoints / "checkpoint_best.pt"
        if trained.exists():
            return best
        mend_last_checkpoint(checkpoints)
        command: list[str | os.PathLike] = [*fairseq("train"), data, "--user-dir", PLUGIN, *options]
        command += ["--seed", str(self.cell.seed), "--save-dir", checkpoints, "--no-epoch-checkpoints"]
        command += ["--update-epoch-batch-itr", "True", "--max-epoch", str(epochs)]
        command += ["--log-format", "json", "--log-interval", "25"]
        if self.cell.scale != "paper":
            command += ["--cpu", "--num-workers", "0"]
        if self.max_minutes is not None:
            command += ["--stop-time-hours", f"{self.max_minutes / 60:.6g}"]
        task = self.progress.task(str(self.cell), epochs)
        shown = self.recipe.progress_metric

        def show(line: str) -> None:
            entry = logs.parse_line(line)
            if entry is None:
                return
            if entry.tag == "train_inner":
                task.advance(entry.statistics.get("update", 0.0))
            elif f"valid_{shown}" in entry.statistics:
                value = entry.statistics[f"valid_{shown}"]
                task.advance(entry.statistics["epoch"], f"validation {shown.replace('_', ' ')} {value:.4f}")

        log = self.folder / "train.log"
        usage = run_command(command, log, threads=self.threads, on_line=show)
        with open(log, encoding="utf-8") as stream:
            lines = stream.readlines()
        if not best.exists() and (checkpoints / "checkpoint_last.pt").exists():
            limit = "" if self.max_minutes is None else f", {self.max_minutes:g} minutes; --max-minutes allows more"
            raise ValueError(f"{self.cell}: training ended before it was validated{limit}")
        write_json(trained, {
            "seconds": logs.seconds(lines) or usage.seconds,
            "peak_memory": usage.peak_memory,
            "parameters": logs.parameters(lines),
        })
        return best

    def finish(self, records: str | os.PathLike | None) -> list[Measurement]:
        """Prepare, train, evaluate and append records to a folder; the measurements come back.

        records: the folder; None leaves nothing but the run's own done.json.
        """
        if self.done:
            return [Measurement(**m) for m in read_json(self.folder / "done.json")["measurements"]]
        os.makedirs(os.path.realpath(self.folder), exist_ok=True)  # a link may lead to what is not there yet
        data_cell = self.recipe.data_cell(self.cell)
        if data_cell == self.cell:
            data = self.recipe.prepare(self)
            checkpoint = self.recipe.train(self, data)
            with _evaluating:
                measurements = list(self.recipe.evaluate(self, data, checkpoint))
            settings, draws = self.recipe.settings(self.cell), self.recipe.draws(self.cell)
        else:
            beside = copy(self)
            beside.cell = data_cell
            data = self.recipe.prepare(beside)
            measurements = list(self.recipe.baseline(beside, data, self.cell.row))
            settings, draws = {}, {}
        if records is not None:
            append_records(records, self._records(data, measurements))
        write_json(self.folder / "done.json", {
            "configuration_hash": self.configuration_hash,
            "settings": settings,
            "seed": self.cell.seed,
            "draws": draws,
            "measurements": [m._asdict() for m in measurements],
        })
        return measurements

    def _records(self, data: Path, measurements: Sequence[Measurement]) -> list[Record]:
        trained = self.folder / "trained.json"
        training: Mapping[str, Any] = (
            read_json(trained) if trained.exists() else {"seconds": 0.0, "peak_memory": 0, "parameters": None}
        )
        data_cell = self.recipe.data_cell(self.cell)
        checksums = {
            str(path.relative_to(data)): sha256(path) for path in sorted(data.rglob("*")) if path.is_file()
        }
        tables: dict[str, dict[str, Any]] = {}
        for m in measurements:
            tables.setdefault(m.table or self.recipe.table_of(data_cell), {})[m.metric] = m.entry()
        return [
            Record(
                paper=self.recipe.paper, table=table, row=self.cell.row, metrics=metrics, seed=self.cell.seed,
                scale=self.cell.scale, dataset=self.recipe.dataset(data_cell),
                configuration_hash=self.configuration_hash, data_checksums=checksums,
                parameters=training["parameters"], seconds=training["seconds"], peak_memory=training["peak_memory"],
                versions=versions(), command=command_line(self.recipe, self.cell), machine=machine(self.threads),
            )
            for table, metrics in tables.items()
        ]


def recipe_script(recipe: Recipe) -> Path:
    """The file that defines a recipe's class."""
    return Path(sys.modules[type(recipe).__module__].__file__ or "").resolve()


def command_line(recipe: Recipe, cell: Cell) -> str:
    """The command that makes one cell, from the root of the repository; it says whether kernels were compiled."""
    script = recipe_script(recipe)
    script = script.relative_to(PLUGIN.parent) if script.is_relative_to(PLUGIN.parent) else Path(script.name)
    compiled = f"{VARIABLE}=1 " if os.environ.get(VARIABLE) == "1" else ""
    return f'{compiled}python {script} --scale {cell.scale} --row "{cell.row}" --seed {cell.seed}'


def slug(name: str) -> str:
    """A name as a file name: letters, digits, '.', '+' and '-' stay, all else becomes '-'."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-")


def mend_last_checkpoint(folder: Path) -> None:
    """Replace a checkpoint_last.pt cut short while it was copied by checkpoint_best.pt, or drop it if that is cut too.

    fairseq writes one file whole and copies it to the other names, so at most the copy is damaged.
    """
    last, best = folder / "checkpoint_last.pt", folder / "checkpoint_best.pt"
    if last.exists() and not zipfile.is_zipfile(last):
        last.unlink()
        if best.exists() and zipfile.is_zipfile(best):
            shutil.copyfile(best, folder / "checkpoint_last.pt.copy")
            os.replace(folder / "checkpoint_last.pt.copy", last)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object to a file that appears only when it is whole."""
    with atomic_write(path) as stream:
        json.dump(content, stream, indent=1)
        stream.write("\n")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)
