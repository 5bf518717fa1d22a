"""What a recipe says: the cells of a table, and how one of them is prepared, trained and evaluated."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Mapping, NamedTuple, Sequence

from seqstruct.harness.measurements import Measurement
from seqstruct.harness.records import PAPERS, SCALES

if TYPE_CHECKING:
    from seqstruct.harness.run import Run


@dataclass(frozen=True)
class Cell:
    """One run: a row of a table, a seed, a scale ("smoke", "small" or "paper")."""

    row: str
    seed: int
    scale: str

    def __str__(self) -> str:
        return f"{self.row}, seed {self.seed}"


class Estimate(NamedTuple):
    """What one cell takes.  minutes: of one thread (of one GPU where the recipe says so); disk, download: MiB.

    `download` is counted once for all cells, the rest adds up.
    """

    minutes: float
    disk: float
    download: float = 0.0


class Recipe(ABC):
    """One row group of a table.  A subclass sets the class attributes and defines the methods without a default.

    paper, table: as in `Record`.  stand_in: the table of what is not at scale paper, where its data are others; a
    measurement may name another table.  family: of models; continuous integration runs one recipe of each.
    rows: names as in paper.json.  licence: of the data, with where it comes from.
    smoke_rows: the rows run at the smoke scale, all by default.  seeds: how many seeds each scale has.
    max_minutes: wall-clock limit of training one cell, None for no limit.  threads: for each process, None for
    the machine's default.  Scales smoke and small run on the CPU.  progress_metric: the validation statistic shown
    while a cell trains.
    """

    paper: ClassVar[str]
    table: ClassVar[str]
    family: ClassVar[str]
    rows: ClassVar[Sequence[str]]
    licence: ClassVar[str]
    stand_in: ClassVar[str] = ""
    smoke_rows: ClassVar[Sequence[str]] = ()
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 1, "paper": 1}
    max_minutes: ClassVar[Mapping[str, float | None]] = {"smoke": 2.0, "small": 30.0, "paper": None}
    threads: ClassVar[Mapping[str, int | None]] = {"smoke": 1, "small": 1, "paper": None}
    progress_metric: ClassVar[str] = "loss"

    @abstractmethod
    def settings(self, cell: Cell) -> Mapping[str, Any]:
        """Everything that decides the cell's numbers, the seed apart, as JSON values; hashed into its configuration."""

    @abstractmethod
    def dataset(self, cell: Cell) -> str:
        """One line: which data, and what departs from the published set."""

    @abstractmethod
    def estimate(self, cell: Cell) -> Estimate:
        """What the cell takes; no work is done."""

    @abstractmethod
    def prepare(self, run: Run) -> Path:
        """Make the data (see `Run.prepared`) and return its folder, whose files are checksummed."""

    @abstractmethod
    def train(self, run: Run, data: Path) -> Path:
        """Train (see `Run.fairseq_train`) and return the checkpoint to evaluate."""

    @abstractmethod
    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        """The numbers of the trained cell, the one that selects the best run among them."""

    def draws(self, cell: Cell) -> Mapping[str, float]:
        """What the cell draws at random for itself (see `search`), by name: nothing unless a recipe says so."""
        return {}

    def baselines(self, scale: str) -> Mapping[str, str]:
        """Rows that the data alone decide, each with the row whose data it takes: none unless a recipe says so.

        Their names end in one of those of `seqstruct.harness.baselines`.  They are no part of `rows`: settings,
        dataset, estimate and prepare are asked of the other row.
        """
        return {}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        """The numbers of a baseline's row.  run: of the row whose data it takes, in the baseline's folder."""
        from seqstruct.harness.baselines import measure, name_of

        return measure(name_of(row), data)

    def table_of(self, cell: Cell) -> str:
        """The table that a cell's numbers stand in."""
        return self.stand_in if self.stand_in and cell.scale != "paper" else self.table

    def data_cell(self, cell: Cell) -> Cell:
        """The cell whose data a cell takes: its own, or for a baseline those of the row that `baselines` names."""
        return replace(cell, row=self.baselines(cell.scale).get(cell.row, cell.row))

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """The cells of a scale, in the order of the rows; seeds count from 1 unless given.

        Raises ValueError if there is no such scale.
        """
        if scale not in SCALES:
            raise ValueError(f"scale {scale!r} is unknown; scales: {', '.join(SCALES)}")
        rows = self.smoke_rows if scale == "smoke" and self.smoke_rows else self.rows
        chosen = range(1, self.seeds[scale] + 1) if seeds is None else seeds
        return [Cell(row, seed, scale) for row in rows for seed in chosen]

    def configuration_hash(self, cell: Cell) -> str:
        """Sixteen hexadecimal digits of SHA-256 over paper, table, row, scale and settings; a baseline has none."""
        settings = self.settings(cell) if self.data_cell(cell) == cell else "baseline"
        whole = [self.paper, self.table, cell.row, cell.scale, settings]
        return hashlib.sha256(json.dumps(whole, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        paper = getattr(cls, "paper", None)
        if paper is not None and paper not in PAPERS:
            raise ValueError(f"{cls.__name__}.paper: expected one of {', '.join(PAPERS)}, got {paper!r}")
