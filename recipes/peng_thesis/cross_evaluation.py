"""Trained with one attention, evaluated with another, without fine-tuning (Peng 2022, Table 4.6).

A row is a model trained with softmax (S-attn), softmax between queries and keys of norm 1 (NS-attn) or RFA-Gaussian in
decoder and cross attention; each is evaluated with all of them on the validation set: what the two attentions share by
name and shape is taken over, the rest has initial values.  Scale paper is on IWSLT14 German to English, as made by
data-prep/iwslt14.sh (--from DIR); scales small and smoke on Multi30k, by the models of efficient_translation.py,
which are trained once for both recipes.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import efficient_translation as translation

from seqstruct.harness.baselines import measure
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.harness.translate import corpus_scores

MODELS = {"S-attn": "BASE", "NS-attn": "NS-attn", "RFA": "RFA-Gaussian"}


def model_of(attention: str, scale: str) -> str:
    """The row of efficient_translation.py with this attention."""
    return f"IWSLT14 de-en {MODELS[attention]}" if scale == "paper" else MODELS[attention]


class CrossEvaluation(Recipe):
    """SacreBLEU on the validation set for each attention in evaluation."""

    paper = "peng_thesis"
    table = "4.6"
    stand_in = "4.6-stand-in"
    family = "efficient attention translation"
    rows = tuple(f"trained {attention}" for attention in MODELS)
    smoke_rows = ("trained S-attn",)
    licence = translation.recipe.licence

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {"copy": self.rows[0]}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        languages = translation.languages(self._cell(run.cell).row, run.cell.scale)
        (bleu,) = measure("copy", data, languages=languages, metrics=("bleu",), splits=("valid",))
        return [bleu._replace(metric=f"bleu_evaluated_{attention}") for attention in MODELS]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {
            **translation.recipe.settings(self._cell(cell)),
            "evaluated": {attention: translation.plans(model_of(attention, cell.scale), cell.scale)
                          for attention in MODELS},
            "decode_options": self._decode_options(cell),
        }

    def dataset(self, cell: Cell) -> str:
        return f"{translation.recipe.dataset(self._cell(cell))}, validation set"

    def estimate(self, cell: Cell) -> Estimate:
        return translation.recipe.estimate(self._cell(cell))

    def prepare(self, run: Run) -> Path:
        return translation.recipe.prepare(self._run(run))

    def train(self, run: Run, data: Path) -> Path:
        other = self._run(run)
        other.folder.mkdir(parents=True, exist_ok=True)
        checkpoint = translation.recipe.train(other, data)
        shutil.copyfile(other.folder / "trained.json", run.folder / "trained.json")
        return checkpoint

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        languages = translation.languages(self._cell(run.cell).row, run.cell.scale)
        found = []
        for attention in MODELS:
            overrides = None
            if run.cell.row != f"trained {attention}":
                overrides = translation.plans(model_of(attention, run.cell.scale), run.cell.scale)
            options = self._decode_options(run.cell)
            bleu = corpus_scores(run, data, checkpoint, languages, options, attention, overrides)[0].value
            found.append(Measurement(f"bleu_evaluated_{attention}", bleu, "BLEU"))
        return found

    def _cell(self, cell: Cell) -> Cell:
        return Cell(model_of(cell.row.removeprefix("trained "), cell.scale), cell.seed, cell.scale)

    def _decode_options(self, cell: Cell) -> tuple[str, ...]:
        return translation.decode_options(self._cell(cell).row, cell.scale, "valid")

    def _run(self, run: Run) -> Run:
        """The run of efficient_translation.py that trains this row's model, in its own folder."""
        return Run(translation.recipe, self._cell(run.cell), run.root.parent, progress=run.progress, source=run.source,
                   max_minutes=run.max_minutes)  # fmt: skip


recipe = CrossEvaluation()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
