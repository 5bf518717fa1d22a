"""Two context-free languages at the published lengths (Stack Attention, section 6): 40 to 80, tested to 100.

At scale small the data, models, batches and optimizer are the published ones; the learning rate is the pilot's, and
there are 12 epochs (published: up to 200), five to ten minutes of one thread with compiled kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cfl import PILOT_LEARNING_RATE, SETTINGS, ContextFreeLanguages, Setting

from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement
from seqstruct.harness.run import Run

EPOCHS = 12


class PublishedLengths(ContextFreeLanguages):
    """Marked reversal and the hardest context-free language; a Transformer alone and with either stack."""

    table = "figure-2-published-lengths"
    rows = tuple(
        f"{language} {model}" for language in ("marked-reversal", "hardest-cfl") for model in ("Tf", "Tf+Sup", "Tf+Nd")
    )
    smoke_rows = ("marked-reversal Tf+Nd",)

    def setting(self, cell: Cell) -> Setting:
        if cell.scale != "small":
            return SETTINGS[cell.scale]
        _, model = self.language_and_model(cell)
        return replace(SETTINGS["paper"], epochs=EPOCHS, learning_rate=(PILOT_LEARNING_RATE[model],) * 2)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        """Without the parameters, which table 5 has from cfl.py."""
        return [m for m in super().evaluate(run, data, checkpoint) if m.metric != "parameters"]

    def estimate(self, cell: Cell) -> Estimate:
        whole = super().estimate(cell)
        return whole._replace(minutes=whole.minutes * (1.4 if cell.scale == "small" else 1.0))


recipe = PublishedLengths()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
