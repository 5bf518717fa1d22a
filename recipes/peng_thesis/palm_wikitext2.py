"""PaLM on WikiText-2 (thesis, Table 3.2): perplexity of AWD-LSTM, PaLM-U and PaLM-S.

Scale paper downloads WikiText-2 raw, or takes --from, a folder with wiki.{train,valid,test}.raw.  PaLM-S needs parses
of the text, by a parser which the thesis does not name: a folder with train.mrg, valid.mrg and test.mrg, which then all
rows read, so that they predict the same tokens (an EOS after each sentence, where WikiText-2 has one after each
paragraph).  Scales small and smoke take the data of palm.py in place of WikiText-2, with its spans of at most 10 words.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import palm

from seqstruct.data.parsed_text import prepare
from seqstruct.harness.baselines import ORDERS
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

SCRIPT = Path(__file__).resolve().parents[2] / "data-prep" / "wikitext2.sh"
MODELS = {
    "AWD-LSTM": ("--arch", "awd_lstm_wikitext2"),
    "PaLM-U": ("--arch", "palm_wikitext2"),
    "PaLM-S": ("--arch", "palm_wikitext2", "--span-supervision", "0.01"),
}
SETTINGS = {
    **palm.SETTINGS,
    # Merity et al. 2018: 750 epochs, 80 rows
    "paper": replace(palm.SETTINGS["paper"], vocabulary=0, max_span=10, batch_size=80, epochs=750),
}


class PaLMWikiText2(Recipe):
    """Perplexity of a word."""

    paper = "peng_thesis"
    table = "3.2"
    stand_in = "3.2-stand-in"
    family = "parsing language models"
    rows = tuple(MODELS)
    smoke_rows = ("PaLM-S",)
    licence = "WikiText-2: CC BY-SA; nltk's sample of the treebank: non-commercial; smoke: none needed"

    def baselines(self, scale: str) -> Mapping[str, str]:
        return dict.fromkeys(ORDERS, "AWD-LSTM")

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        return {**asdict(setting), "train_options": palm.train_options(cell.row, setting, MODELS)}

    def dataset(self, cell: Cell) -> str:
        if cell.scale == "paper":
            return "WikiText-2 raw, types that training has three times"
        return f"in place of WikiText-2: {palm.recipe.dataset(cell)}"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.4, "small": 5.0, "paper": 4000.0}[cell.scale]
        return Estimate(minutes, disk=600.0 if cell.scale == "paper" else 30.0,
                        download=4.7 if cell.scale == "paper" else 0.0)

    def prepare(self, run: Run) -> Path:
        if run.cell.scale != "paper":
            return palm.prepared_trees(run, SETTINGS[run.cell.scale].vocabulary)
        parses = run.source
        if parses is not None and (parses / "train.mrg").is_file():
            return run.prepared(
                "wikitext2-parses", lambda out: prepare("parses", parses, out, leave_out_longer=True) and None
            )
        if run.cell.row == "PaLM-S":
            raise ValueError("PaLM-S needs parses of WikiText-2: --from a folder with train.mrg, valid.mrg, test.mrg")
        words = ["env", f"PYTHON={sys.executable}", "bash", SCRIPT, *(["--from", parses] if parses else [])]
        return run.prepared("wikitext2", lambda out: run.command([*words, "--out", out]) and None)

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        options = palm.train_options(run.cell.row, setting, MODELS)
        options[options.index("--task") + 1] = self._task(data)
        return run.fairseq_train(data / "bin", options, epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        found = palm.perplexities(run, data / "bin", checkpoint, self._task(data))
        return [
            Measurement("validation_perplexity", found["valid"], "perplexity"),
            Measurement("test_perplexity", found["test"], "perplexity"),
            Measurement("parameters", run.parameters, "parameters"),
        ]

    @staticmethod
    def _task(data: Path) -> str:
        return "span_language_modeling" if (data / "trees").is_dir() else "stream_language_modeling"


recipe = PaLMWikiText2()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
