"""Growth of softmax attention, RFA and ABC with the length (Peng 2022, tables 4.1 and 5.2), as fitted exponents.

Table 4.1 counts time as if all steps that may run at once did; what stands beside it is time on one thread, and the
number of operators, which run one after another.  It counts the space of all of decoding; ours is the greatest sum of
tensors that live at once in it.  What is measured is this implementation: its softmax attention never holds all weights
at once, so its memory grows with n.  M = N = n.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqstruct.benchmarks.growth import FITTED, TABLE_4_1, TABLE_5_2, exponent
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

LENGTHS = {"smoke": (16, 32, 64), "small": (128, 256, 512, 1024, 2048), "paper": (128, 256, 512, 1024, 2048, 4096)}
REPEATS = {"smoke": 1, "small": 3, "paper": 3}
MEMORY = {"training": "memory"}  # with gradients; without them elsewhere


class AttentionGrowth(Recipe):
    """Exponents; each record keeps the points they were fitted to."""

    paper = "peng_thesis"
    table = "4.1"
    family = "efficient attention layers alone"
    rows = (*TABLE_4_1, *TABLE_5_2)
    smoke_rows = ("training causal RFA", "reading ABC")
    licence = "none needed, inputs are random"

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {"lengths": LENGTHS[cell.scale], "repeats": REPEATS[cell.scale], "fitted": FITTED}

    def dataset(self, cell: Cell) -> str:
        return f"random inputs, batch 4, size 64, fitted to the last {FITTED} lengths of {list(LENGTHS[cell.scale])}"

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate({"smoke": 0.2, "small": 0.7, "paper": 3.0}[cell.scale], 0.1)

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
        phase = run.cell.row.split()[0]
        quantities = {"time": "time", "memory": MEMORY.get(phase, "forward_memory"), "operators": "operators"}
        table = "4.1" if run.cell.row in TABLE_4_1 else "5.2"
        return [
            Measurement(
                f"{name}_exponent", exponent(found[quantity]), "exponent of n", "length", found[quantity], table=table
            )
            for name, quantity in quantities.items()
        ]


recipe = AttentionGrowth()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
