"""What needs no training in Tables 3.3 and 3.4 of the thesis: fixed branching, gold trees, untrained models.

Row "Random" of Table 3.4 is a PaLM with parameters as they are drawn, one for each seed, 25 of them.  Data as in
palm.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from palm import SETTINGS, more_parse_measurements, parse_measurements, prepared_trees, train_options

from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

UNTRAINED = "Random"
BRANCHING = {"Right branching": "right", "Left branching": "left", "Random branching": "random", "Gold": "gold"}


class Branching(Recipe):
    """Unlabeled F1 and branching on the test set."""

    paper = "peng_thesis"
    table = "3.4"
    stand_in = "3.4-stand-in"
    family = "branching baselines"
    rows = (*BRANCHING, UNTRAINED)
    smoke_rows = ("Right branching", UNTRAINED)
    licence = "Penn Treebank: LDC99T42; nltk's sample: non-commercial; smoke: none needed, the sentences are made up"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """One seed but for the untrained models, which have 25 unless seeds are given (one at the smoke scale)."""
        more = [] if seeds is not None or scale == "smoke" else range(2, 26)
        return super().cells(scale, seeds) + [Cell(UNTRAINED, seed, scale) for seed in more]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        if cell.row != UNTRAINED:
            return {"vocabulary": setting.vocabulary}
        return {**asdict(setting), "train_options": train_options("PaLM-U", setting)}

    def dataset(self, cell: Cell) -> str:
        data = {
            "smoke": "20 made-up sentences", "small": "the 244 test sentences of nltk's sample of the PTB",
            "paper": "PTB, sections 23-24",
        }[cell.scale]
        setting = SETTINGS[cell.scale]
        model = f", model of {setting.layers or 3} layers of size {setting.hidden_size or 1020}, untrained"
        return data + (model if cell.row == UNTRAINED else "")

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate({"smoke": 0.3, "small": 0.8, "paper": 10.0}[cell.scale], disk=30.0)

    def prepare(self, run: Run) -> Path:
        return prepared_trees(run, SETTINGS[run.cell.scale].vocabulary)

    def train(self, run: Run, data: Path) -> Path:
        return data

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        trees = data / "trees" / "test.mrg"
        if run.cell.row in BRANCHING:
            options = ["--branching", BRANCHING[run.cell.row], "--seed", str(run.cell.seed)]
            found = parse_measurements(run, trees, options)
            if run.cell.row == "Gold":
                return [m for m in found if m.table == self.table_of(run.cell)]
            return found + more_parse_measurements(run, trees, options, left=False)
        words = shlex.join([str(data / "bin"), *train_options("PaLM-U", SETTINGS[run.cell.scale])])
        return parse_measurements(run, trees, ["--untrained", words, "--seed", str(run.cell.seed), "--lowercase"])


recipe = Branching()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
