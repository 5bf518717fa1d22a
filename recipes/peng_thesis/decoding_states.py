"""Memory of decoders by length (Peng 2022, figures 4.2, 4.3 and 5.1): megabytes of all states after so many tokens.

Models, lengths and figures are those of decoding_curves.py.  `state_memory` is what is used, that is read at a step;
softmax's cache doubles when it is full, and `reserved_memory` counts its spare cells.  Nothing is timed: the numbers
are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from decoding_curves import FIGURES, LENGTHS, NAMES

from seqstruct.benchmarks.decode import BATCH, states
from seqstruct.benchmarks.timing import Place
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run


class DecodingStates(Recipe):
    """Megabytes; no training."""

    paper = "peng_thesis"
    table = "figure-4.2"
    family = "efficient decoders alone"
    rows = tuple(NAMES)
    smoke_rows = ("softmax", "RFA-Gaussian")
    licence = "none needed, inputs are random"

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {"lengths": LENGTHS[cell.scale], "batch": BATCH, "quantities": ["used", "reserved"]}

    def dataset(self, cell: Cell) -> str:
        return f"random tokens, batch {BATCH}, lengths {list(LENGTHS[cell.scale])}, float32"

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate({"smoke": 0.1, "small": 0.5, "paper": 0.5}[cell.scale], 0.1)

    def prepare(self, run: Run) -> Path:
        return run.prepared("random-tokens", lambda folder: None)

    def train(self, run: Run, data: Path) -> Path:
        return data

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        lengths, found = LENGTHS[run.cell.scale], []
        for figure, (kind, rows) in FIGURES.items():
            if run.cell.row not in rows:
                continue
            own, base = (counted(row, lengths, kind) for row in (run.cell.row, "softmax"))
            used, reserved = ([(length, pair[part]) for length, pair in own.items()] for part in range(2))
            share = 100 * used[-1][1] / base[lengths[-1]][0]
            found += [
                Measurement("state_memory", used[-1][1], "MB", "length", used, table=figure),
                Measurement("memory_share", share, "% of softmax's", table=figure),
                Measurement("reserved_memory", reserved[-1][1], "MB", "length", reserved, table=figure),
            ]
        return found


@cache
def counted(row: str, lengths: Sequence[int], kind: str) -> Mapping[int, tuple[float, float]]:
    """Used and reserved megabytes by length."""
    return states(NAMES[row], lengths, kind == "conditional", Place.of("cpu", "float32"))


recipe = DecodingStates()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
