"""Tree transduction (Structured Attention Networks, Table 2): formulas in prefix notation rewritten in infix notation,
by an encoder of symbol embeddings without attention, with simple and with structured self-attention.

Scale paper is the published setting, which a laptop trains in minutes.  The source leaves open how formulas branch and
how long they get: here the number of expressions in parentheses is uniform from 2 to 4, and where a number would do an
expression is a formula with probability 0.2.  Its size of s (appendix A.1) is 50 here.  Validation formulas have the
depths of training.  Scale small has a fifth of the formulas and 8 epochs, scale smoke a few formulas and 2 epochs.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.data.aligned import read_lines
from seqstruct.data.tree_transduction.folder import Request, Split, read_meta, read_split, write_folder
from seqstruct.data.tree_transduction.formula import infix, parse_prefix
from seqstruct.harness import plot
from seqstruct.harness.command import main
from seqstruct.harness.process import fairseq
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run
from seqstruct.scoring.first_failure import share_before_failure
from seqstruct.scoring.hypotheses import read_generate

ARCHITECTURES = {
    "No attention": "tree_transduction_none",
    "Simple": "tree_transduction_simple",
    "Structured": "tree_transduction_structured",
}


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.  train, valid, test: formulas of each depth.  decay_after_epoch: at the latest."""

    train: int
    valid: int
    test: int
    epochs: int
    decay_after_epoch: int


SETTINGS = {
    "smoke": Setting(60, 10, 6, 2, 1),
    "small": Setting(1000, 100, 100, 8, 5),
    "paper": Setting(5000, 200, 200, 13, 9),
}
EXAMPLE = "$ ( * ( + ( + 15 7 ) 1 8 ) ( + 19 0 11 ) )"  # section 4.1
DECODE = ("--beam", "5", "--max-len-a", "1.4", "--max-len-b", "5")


def train_options(row: str, setting: Setting) -> list[str]:
    """fairseq-train's options for appendix A.2; data, seed and epochs apart."""
    return [
        "--task", "tree_transduction", "--arch", ARCHITECTURES[row], "--criterion", "cross_entropy", "--sentence-avg",
        "--optimizer", "sgd", "--lr", "1", "--lr-scheduler", "decay_from_plateau", "--lr-shrink", "0.5",
        "--decay-after-epoch", str(setting.decay_after_epoch), "--clip-norm", "1", "--batch-size", "20",
        "--required-batch-size-multiple", "1",
    ]  # fmt: skip


class TreeTransduction(Recipe):
    """Average share of the target before the first failure, in percent, for each depth of the test set.

    The run's folder gets attention.png.
    """

    paper = "structured_attention"
    table = "2"
    family = "structured attention"
    rows = tuple(ARCHITECTURES)
    smoke_rows = ("Structured",)
    seeds = {"smoke": 1, "small": 1, "paper": 3}
    threads = {"smoke": 1, "small": 1, "paper": 1}
    licence = "none needed, the formulas are sampled"

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {"copy": "Structured", "constant": "Structured"}

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        options = train_options(cell.row, setting)
        return {**asdict(setting), "train_options": options, "decode_options": DECODE}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        text = (
            f"{setting.train} formulas of each depth 2 to 4 to train, {setting.test} of each depth 2 to 6 to test, "
            f"at most {setting.epochs} epochs; mean lengths of prefix forms by depth 14, 22, 33, 45, 58 (open in the "
            "source)"
        )
        return text if cell.scale == "paper" else f"{text} (published: 5000 and 200, 13 epochs)"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.3, "small": 1.2, "paper": 8.0}[cell.scale]
        return Estimate(minutes * {"No attention": 0.3, "Simple": 0.6, "Structured": 1.0}[cell.row], disk=5.0)

    def prepare(self, run: Run) -> Path:
        setting = SETTINGS[run.cell.scale]
        request = Request(train=setting.train, valid=setting.valid, test=setting.test, seed=run.cell.seed)
        name = f"formulas-{setting.train}-{setting.valid}-{setting.test}-seed{run.cell.seed}"

        def make(folder: Path) -> None:
            write_folder(request, folder)

        return run.prepared(name, make)

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        options = [*train_options(run.cell.row, setting), "--num-workers", "0"]
        return run.fairseq_train(data, options, epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        meta = read_meta(data)
        shares = {}
        for split in ("valid", "test"):
            run.progress.say(f"{run.cell}: decoding {split}")
            run.command(
                [*fairseq("generate"), data, "--user-dir", PLUGIN, "--task", "tree_transduction", "--path", checkpoint,
                 "--gen-subset", split, *DECODE, "--batch-size", "50", "--num-workers", "0", "--cpu",
                 "--results-path", run.folder],
                "decode.log",
            )  # fmt: skip
            shares[split] = by_depth(read_split(data, split, meta), run.folder / f"generate-{split}.txt")
        draw_attention(run, data, checkpoint)
        validation = statistics.fmean(share for depth in shares["valid"].values() for share in depth)
        means = {depth: 100 * statistics.fmean(of_depth) for depth, of_depth in shares["test"].items()}
        overall = statistics.fmean(means.values())
        return [
            Measurement("validation_length_to_failure", 100 * validation, "%"),
            *(Measurement(f"length_to_failure_depth_{depth}", value, "%") for depth, value in means.items()),
            Measurement("length_to_failure", overall, "%", "depth", sorted(means.items())),
        ]


def draw_attention(run: Run, data: Path, checkpoint: Path) -> None:
    """Write attention.png, as Figure 3 and what the decoder attends to, for the formula of section 4.1."""
    target = " ".join(infix(parse_prefix(EXAMPLE.split())))
    views = plot.layer_views(checkpoint, EXAMPLE, target=target, data=data)
    plot.save(plot.attention(views, run.cell.row), run.folder / "attention.png")


def by_depth(formulas: Split, generated: Path) -> dict[int, list[float]]:
    """The share before the first failure of each formula, by depth, from the output of fairseq-generate."""
    hypotheses = read_generate(read_lines(generated), str(generated), len(formulas.infix))
    found: dict[int, list[float]] = {}
    for depth, hypothesis, reference in zip(formulas.depths, hypotheses, formulas.infix, strict=True):
        found.setdefault(depth, []).append(share_before_failure(hypothesis.split(), reference))
    return dict(sorted(found.items()))


recipe = TreeTransduction()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
