"""The learning rate of each model at the small scale of cfl.py: three values, spread over the published range.

Two passes over the small training strings of marked reversal; the value that ends lowest on the validation strings is
the one that cfl.py takes for that model in all languages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cfl import MODELS, SETTINGS, ContextFreeLanguages, Setting, cross_entropy_differences

from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement
from seqstruct.harness.run import Run

LANGUAGE = "marked-reversal"
LEARNING_RATES = (0.001, 0.0025, 0.006)
EPOCHS = 2


class Pilot(ContextFreeLanguages):
    """A row for each model and learning rate, named "MODEL lr=VALUE"."""

    table = "figure-2-pilot"
    rows = tuple(f"{model} lr={rate:g}" for model in MODELS for rate in LEARNING_RATES)
    smoke_rows = ("LSTM lr=0.006",)
    seeds = {"smoke": 1, "small": 1, "paper": 1}

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {"5-gram": self.rows[0]}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        return super().baseline(run, data, row)[:1]

    def language_and_model(self, cell: Cell) -> tuple[str, str]:
        return LANGUAGE, cell.row.split()[0]

    def setting(self, cell: Cell) -> Setting:
        rate = float(cell.row.rpartition("=")[2])
        return replace(SETTINGS[cell.scale], epochs=EPOCHS, learning_rate=(rate, rate))

    def estimate(self, cell: Cell) -> Estimate:
        whole = super().estimate(cell)
        return whole._replace(minutes=whole.minutes * EPOCHS / SETTINGS[cell.scale].epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        differences = cross_entropy_differences(run, data, checkpoint)
        return [Measurement("validation_cross_entropy_difference", *differences["valid"])]


recipe = Pilot()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
