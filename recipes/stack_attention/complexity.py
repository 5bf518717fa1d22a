"""Growth with the length n of softmax attention and of the two stacks (Stack Attention, Tables 1 and 4).

Fitted exponents of n: of the time of a forward and backward pass and of its memory, with and without gradients (Table
4, which states them), and of the number of operators that run one after another (for Table 1, which states parallel
time).  At lengths where the work inside an operator is small beside its start, time grows like the operators.  What is
measured is this implementation: its softmax attention never holds all weights at once, so its memory grows with n.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seqstruct.benchmarks.growth import LAYERS, QUANTITIES
from seqstruct.harness.command import main
from seqstruct.harness.growth import GrowthRecipe
from seqstruct.harness.recipe import Cell, Estimate, Measurement
from seqstruct.harness.run import Run


class Complexity(GrowthRecipe):
    """Exponents of time, memory and operators."""

    paper = "stack_attention"
    table = "4"
    family = "attention layers alone"
    rows = tuple(LAYERS)
    smoke_rows = ("SDPA",)
    lengths = {"smoke": (10, 20, 40), "small": (40, 80, 160, 320, 640), "paper": (40, 80, 160, 320, 640, 1280)}
    inputs = "batch 10, size 32"

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate({"smoke": 0.2, "small": 1.0, "paper": 8.0}[cell.scale] * (1 if cell.row == "Nd" else 0.3), 0.1)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        tables = {quantity: "1" if quantity == "operators" else self.table for quantity in QUANTITIES}
        return self.fitted(checkpoint, {quantity: quantity for quantity in QUANTITIES}, tables)


recipe = Complexity()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
