"""From softmax attention to RFA and T2R by fine-tuning (Peng 2022, figure 4.4 and section 4.5.3): a stand-in.

The thesis fine-tunes a translation model of IWSLT14; here it is the small language model BASE of efficient_lm.py, on
Brown, with a new optimizer and a constant rate.  "reset" starts attention, the projections of queries, keys, values and
outputs among it, from initial values.  Training losses are means over 25 updates, in bits of a subword; the
softmax model's is that of its last epoch.  `updates_to_softmax_loss` is where a curve first is at or below it, and is
not recorded where none is.  T2R (Kasai et al. 2021) keeps the projections and learns a feature map.
figures.py draws the records.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from efficient_lm import PLANS, PLUGIN, SETTINGS, describe, perplexity, prepare_text, train_options
from efficient_lm import recipe as language_models

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.harness import logs
from seqstruct.harness.baselines import ORDERS
from seqstruct.harness.command import main
from seqstruct.harness.process import fairseq
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

ROWS = {  # the plan, and whether attention starts from initial values
    "softmax": (PLANS["BASE"], False),
    "RFA": (PLANS["RFA-Gaussian"], False),
    "RFA reset": (PLANS["RFA-Gaussian"], True),
    "softmax reset": (PLANS["BASE"], True),
    "T2R": ("t2r(features=32)", False),
}
SCALES = {"smoke": (10, 0.01), "small": (300, 0.0005)}  # updates and rate of fine-tuning


def fine_tuning_options(row: str, scale: str) -> list[str]:
    """fairseq-train's options; data, seed, epochs and the model to start from apart."""
    given = train_options("BASE", SETTINGS[scale])
    updates, rate = SCALES[scale]
    changed = {
        "--decoder-self-attention": ROWS[row][0], "--lr": f"{rate:g}", "--lr-scheduler": "fixed",
        "--warmup-updates": str(updates // 10), "--max-update": str(updates),
    }  # fmt: skip
    left_out = {"--save-interval-updates", "--keep-interval-updates", "--validate-after-updates"}
    options: list[str] = []
    for at, word in enumerate(given):
        before = given[at - 1] if at else ""
        if word not in left_out and before not in left_out:
            options.append(changed.get(before, word))
    return options


class SoftmaxTransfer(Recipe):
    """Training loss by update, and perplexity before and after."""

    paper = "peng_thesis"
    table = "figure-4.4"
    family = "efficient attention language models"
    rows = tuple(ROWS)
    smoke_rows = ("RFA reset",)
    licence = "Brown: non-commercial; made-up sentences at the smoke scale: none needed"
    progress_metric = "ppl"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """Raises ValueError at scale paper: the published figure is of a translation model, see cross_evaluation.py."""
        if scale == "paper":
            raise ValueError("figure-4.4 has scales smoke and small; for translation see cross_evaluation.py")
        return super().cells(scale, seeds)

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {} if scale == "paper" else dict.fromkeys(ORDERS, "softmax")

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        return super().baseline(run, data, row)[:1]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        options = [] if cell.row == "softmax" else fine_tuning_options(cell.row, cell.scale)
        return {"softmax": language_models.settings(Cell("BASE", cell.seed, cell.scale)), "train_options": options}

    def dataset(self, cell: Cell) -> str:
        return f"{describe(SETTINGS[cell.scale], cell.scale)}; then {SCALES[cell.scale][0]} updates"

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate({"smoke": 0.5, "small": 9.0}[cell.scale], {"smoke": 2.0, "small": 100.0}[cell.scale])

    def prepare(self, run: Run) -> Path:
        return prepare_text(run, SETTINGS[run.cell.scale])

    def train(self, run: Run, data: Path) -> Path:
        softmax = trained_softmax(run, data)
        if run.cell.row == "softmax":
            return softmax / "checkpoint_best.pt"
        start = start_from(run, softmax / "checkpoint_best.pt")
        options = [*fine_tuning_options(run.cell.row, run.cell.scale), "--finetune-from-model", str(start)]
        return run.fairseq_train(data / "bin", options, epochs=SETTINGS[run.cell.scale].epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        softmax = trained_softmax(run, data)
        found = [Measurement("validation_perplexity", self._perplexity(run, data, checkpoint), "perplexity")]
        aim = training_loss(softmax / "train.log")
        if run.cell.row == "softmax":
            return [*found, Measurement("training_loss", aim, "bits")]
        plan = {"decoder_self_attention": ROWS[run.cell.row][0]}
        before = self._perplexity(run, data, start_from(run, softmax / "checkpoint_best.pt"), plan)
        curve = loss_curve(run.folder / "train.log")
        found += [
            Measurement("validation_perplexity_before", before, "perplexity"),
            Measurement("training_loss", curve[-1][1], "bits", "update", curve),
        ]
        reached = [update for update, loss in curve if loss <= aim]
        return [*found, *(Measurement("updates_to_softmax_loss", update, "updates") for update in reached[:1])]

    @staticmethod
    def _perplexity(run: Run, data: Path, checkpoint: Path, overrides: Mapping[str, Any] | None = None) -> float:
        return perplexity(run, data, checkpoint, "valid", 0, overrides=overrides)


def trained_softmax(run: Run, data: Path) -> Path:
    """The folder of checkpoint_best.pt and train.log of BASE: of its own cell where that is trained, else made here."""
    cell = Cell("BASE", run.cell.seed, run.cell.scale)

    def make(folder: Path) -> None:
        own = Run(language_models, cell, run.root.parent, progress=run.progress)
        if (own.folder / "trained.json").exists():
            shutil.copy(own.folder / "checkpoints" / "checkpoint_best.pt", folder)
            shutil.copy(own.folder / "train.log", folder)
            return
        run.progress.say(f"{run.cell}: training the softmax model, once for all rows")
        setting = SETTINGS[cell.scale]
        run.command([
            *fairseq("train"), data / "bin", "--user-dir", PLUGIN, *train_options(cell.row, setting), "--seed",
            str(cell.seed), "--save-dir", folder, "--no-epoch-checkpoints", "--update-epoch-batch-itr", "True",
            "--max-epoch", str(setting.epochs), "--log-format", "json", "--log-interval", "25", "--cpu",
            "--num-workers", "0",
        ], f"softmax-{cell.seed}.log")  # fmt: skip
        shutil.copy(run.folder / f"softmax-{cell.seed}.log", folder / "train.log")
        for path in folder.glob("checkpoint_*.pt"):
            if path.name != "checkpoint_best.pt":
                path.unlink()

    return run.prepared(f"softmax-{language_models.configuration_hash(cell)}-{cell.seed}", make)


def start_from(run: Run, checkpoint: Path) -> Path:
    """The checkpoint to fine-tune: the softmax model's, or one of it without attention, which then has initial values.

    A row that is not reset starts from what the two mechanisms share.
    """
    if not ROWS[run.cell.row][1]:
        return checkpoint
    path = run.folder / "start.pt"
    if not path.exists():
        state = load_checkpoint(checkpoint)
        state["model"] = {name: value for name, value in state["model"].items() if ".self_attn." not in name}
        torch.save(state, run.folder / ".start.pt")
        (run.folder / ".start.pt").rename(path)
    return path


def loss_curve(log: Path) -> list[tuple[float, float]]:
    """Updates, and the mean training loss of those up to each."""
    entries = logs.parse_lines(log.read_text(encoding="utf-8").splitlines())
    found = [(e.statistics["num_updates"], e.statistics["loss"]) for e in entries if e.tag == "train_inner"]
    if found:
        return found
    # fewer updates than a line of statistics has: those of whole epochs
    return [(e.statistics["train_num_updates"], e.statistics["train_loss"]) for e in entries if e.tag == "train"]


def training_loss(log: Path) -> float:
    """Of the last epoch."""
    entries = logs.parse_lines(log.read_text(encoding="utf-8").splitlines())
    found = [e.statistics["train_loss"] for e in entries if e.tag == "train"]
    if not found:
        raise ValueError(f"{log}: no epoch was finished")
    return found[-1]


recipe = SoftmaxTransfer()

if __name__ == "__main__":
    sys.exit(main(recipe))
