"""Recipes that fit exponents of time, memory and operators to the growth with the length; no training."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqstruct.benchmarks.growth import FITTED, exponent
from seqstruct.harness.recipe import Cell, Measurement, Recipe
from seqstruct.harness.run import Run


class GrowthRecipe(Recipe):
    """Rows are cases of `seqstruct.benchmarks.growth`; each record keeps the points that its exponent was fitted to.

    A recipe gives `lengths` and `repeats` by scale, and `inputs`, their batch and size in words.
    """

    licence = "none needed, inputs are random"
    lengths: Mapping[str, Sequence[int]]
    repeats: Mapping[str, int] = {"smoke": 1, "small": 3, "paper": 3}
    inputs: str

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {"lengths": self.lengths[cell.scale], "repeats": self.repeats[cell.scale], "fitted": FITTED}

    def dataset(self, cell: Cell) -> str:
        lengths = list(self.lengths[cell.scale])
        return f"random inputs, {self.inputs}, fitted to the last {FITTED} lengths of {lengths}"

    def prepare(self, run: Run) -> Path:
        return run.prepared("random-inputs", lambda folder: None)

    def train(self, run: Run, data: Path) -> Path:
        measured = run.folder / "growth.json"
        lengths = map(str, self.lengths[run.cell.scale])
        run.command([
            sys.executable, "-m", "seqstruct.benchmarks.growth", run.cell.row, "--lengths", *lengths,
            "--repeats", str(self.repeats[run.cell.scale]), "--out", measured,
        ])  # fmt: skip
        return measured

    def fitted(self, measured: Path, quantities: Mapping[str, str], tables: Mapping[str, str]) -> list[Measurement]:
        """An exponent for each name, of the benchmark's quantity; tables: of the names."""
        found = json.loads(measured.read_text(encoding="utf-8"))
        return [
            Measurement(
                f"{name}_exponent", exponent(found[quantity]), "exponent of n", "length", found[quantity],
                table=tables[name],
            )  # fmt: skip
            for name, quantity in quantities.items()
        ]
