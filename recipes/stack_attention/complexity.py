"""Growth with the length n of softmax attention and of the two stacks (Stack Attention, Tables 1 and 4).

Fitted exponents of n: of the time of a forward and backward pass and of its memory, with and without gradients (Table
4, which states them), and of the number of operators that run one after another (for Table 1, which states parallel
time).  At lengths where the work inside an operator is small beside its start, time grows like the operators.  What is
measured is this implementation: its softmax attention never holds all weights at once, so its memory grows with n.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqstruct.benchmarks.growth import FITTED, LAYERS, QUANTITIES, exponent
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

LENGTHS = {"smoke": (10, 20, 40), "small": (40, 80, 160, 320, 640), "paper": (40, 80, 160, 320, 640, 1280)}
REPEATS = {"smoke": 1, "small": 3, "paper": 3}


class Complexity(Recipe):
    """Exponents; each record keeps the points they were fitted to."""

    paper = "stack_attention"
    table = "4"
    family = "attention layers alone"
    rows = tuple(LAYERS)
    smoke_rows = ("SDPA",)
    licence = "none needed, inputs are random"

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {"lengths": LENGTHS[cell.scale], "repeats": REPEATS[cell.scale], "fitted": FITTED}

    def dataset(self, cell: Cell) -> str:
        return f"random inputs, batch 10, size 32, fitted to the last {FITTED} lengths of {list(LENGTHS[cell.scale])}"

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate({"smoke": 0.2, "small": 1.0, "paper": 8.0}[cell.scale] * (1 if cell.row == "Nd" else 0.3), 0.1)

    def prepare(self, run: Run) -> Path:
        return run.prepared("random-inputs", lambda folder: None)

    def train(self, run: Run, data: Path) -> Path:
        measured = run.folder / "growth.json"
        lengths = map(str, LENGTHS[run.cell.scale])
        run.command([
            sys.executable, "-m", "seqstruct.benchmarks.growth", run.cell.row, "--lengths", *lengths,
            "--repeats", str(REPEATS[run.cell.scale]), "--out", measured,
        ])  # fmt: skip
        return measured

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        found = json.loads(checkpoint.read_text(encoding="utf-8"))
        return [
            Measurement(
                f"{quantity}_exponent", exponent(found[quantity]), "exponent of n", "length", found[quantity],
                table="1" if quantity == "operators" else self.table,
            )  # fmt: skip
            for quantity in QUANTITIES
        ]


recipe = Complexity()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
