"""Growth of softmax attention, RFA and ABC with the length (Peng 2022, tables 4.1 and 5.2), as fitted exponents.

Table 4.1 counts time as if all steps that may run at once did; what stands beside it is time on one thread, and the
number of operators, which run one after another.  It counts the space of all of decoding; ours is the greatest sum of
tensors that live at once in it, softmax's cache with its spare cells, and while it doubles both: a factor that is the
same at all powers of two, so that no exponent has it.  What is measured is this implementation: its softmax attention
never holds all weights at once, so its memory grows with n.  Nothing is dropped.  M = N = n.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seqstruct.benchmarks.growth import TABLE_4_1, TABLE_5_2
from seqstruct.harness.command import main
from seqstruct.harness.growth import GrowthRecipe
from seqstruct.harness.recipe import Cell, Estimate, Measurement
from seqstruct.harness.run import Run

MEMORY = {"training": "memory"}  # with gradients; without them elsewhere


class AttentionGrowth(GrowthRecipe):
    """Exponents of time, memory and operators."""

    paper = "peng_thesis"
    table = "4.1"
    family = "efficient attention layers alone"
    rows = (*TABLE_4_1, *TABLE_5_2)
    smoke_rows = ("training causal RFA", "reading ABC")
    lengths = {"smoke": (16, 32, 64), "small": (128, 256, 512, 1024, 2048), "paper": (128, 256, 512, 1024, 2048, 4096)}
    inputs = "batch 4, size 64"

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate({"smoke": 0.2, "small": 0.7, "paper": 3.0}[cell.scale], 0.1)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        phase = run.cell.row.split()[0]
        quantities = {"time": "time", "memory": MEMORY.get(phase, "forward_memory"), "operators": "operators"}
        table = "4.1" if run.cell.row in TABLE_4_1 else "5.2"
        return self.fitted(checkpoint, quantities, dict.fromkeys(quantities, table))


recipe = AttentionGrowth()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
