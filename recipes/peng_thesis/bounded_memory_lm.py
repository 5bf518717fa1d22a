"""Language models with bounded memory on WikiText-103 (Peng 2022, Tables 5.4a and 5.4b), at scale paper alone.

--from DIR holds wiki.{train,valid,test}.tokens or wikitext-103-v1.zip.  16 layers as Baevski & Auli (2019) have them,
evaluated with contexts of 0 and 480 tokens of each block of 512; 32 layers with layer dropout (Kasai et al. 2021), with
256.  Optimizer and schedule, which Table B.1 leaves to those papers but for the rate of 1, are those of fairseq's
recipe for the former.  "T2R 32 from softmax" is fine-tuned from the 32 layers of BASE, which are trained first if they
are not.  The small scale of these models is table 4.3-stand-in, see efficient_lm.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from efficient_lm import ADAPTIVE, BLOCK, SETTINGS, describe, perplexity, prepare_text

from seqstruct.harness.baselines import ORDERS
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

PLANS = {
    "BASE": "softmax",
    **{f"Linformer {n}": f"linformer(slots={n}, length={BLOCK})" for n in (32, 64)},
    **{f"ABC-RD {n}": f"abc_random(slots={n}, period={BLOCK})" for n in (32, 64)},
    **{f"ABC-MLP {n}": f"abc_mlp(slots={n})" for n in (32, 64)},
    "ELU 128": "linear",
    "RFA 32": "rfa(features=32)",
    "T2R 32": "t2r(features=32)",
    "T2R 32 from softmax": "t2r(features=32)",
}
TABLES = {
    "16 layers": ("5.4a", (0, 480), [f"{name} {n}" for name in ("Linformer", "ABC-RD", "ABC-MLP") for n in (32, 64)]),
    "32 layers": ("5.4b", (256,), ["ELU 128", "RFA 32", "T2R 32", "T2R 32 from softmax", "ABC-MLP 32"]),
}
SMOKE_SHAPE = (
    "--arch", "structured_transformer_lm", "--decoder-layers", "1", "--decoder-attention-heads", "2",
    "--decoder-embed-dim", "16", "--decoder-ffn-embed-dim", "32", "--share-decoder-input-output-embed", "--criterion",
    "cross_entropy", "--batch-size", "4", "--optimizer", "nag", "--lr", "0.1", "--max-update", "10",
)  # fmt: skip


def parts(row: str) -> tuple[str, str]:
    """Of a row, "16 layers" or "32 layers", and the model."""
    size, model = row[: len("16 layers")], row[len("16 layers ") :]
    return size, model


def train_options(row: str, scale: str) -> list[str]:
    """fairseq-train's options; data, seed and epochs apart."""
    size, model = parts(row)
    options = [
        "--task", "language_modeling", "--sample-break-mode", "none", "--tokens-per-sample", str(BLOCK),
        "--decoder-self-attention", PLANS[model], "--clip-norm", "0.1",
    ]  # fmt: skip
    if scale == "smoke":
        return [*options, *SMOKE_SHAPE]
    return options + [
        "--arch", f"structured_transformer_lm_wikitext103_{size.replace(' ', '_')}", *ADAPTIVE, "--batch-size", "64",
        "--optimizer", "nag", "--lr", "1.0", "--lr-scheduler", "cosine",
        "--warmup-updates", "16000", "--warmup-init-lr", "1e-07", "--min-lr", "0.0001", "--t-mult", "2",
        "--lr-period-updates", "270000", "--lr-shrink", "0.75", "--max-update", "286000",
    ]  # fmt: skip


class BoundedMemoryLanguageModels(Recipe):
    """Perplexity of a word in a running text."""

    paper = "peng_thesis"
    table = "5.4a"
    family = "efficient attention language models"
    rows = tuple(f"{size} {model}" for size, (_, _, models) in TABLES.items() for model in ("BASE", *models))
    smoke_rows = ("16 layers Linformer 32", "32 layers T2R 32 from softmax")
    licence = "WikiText: CC BY-SA; made-up sentences at the smoke scale: none needed"
    progress_metric = "ppl"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """Raises ValueError at scale small."""
        if scale == "small":
            raise ValueError("tables 5.4a and 5.4b have scales smoke and paper; at scale small see efficient_lm.py")
        return super().cells(scale, seeds)

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {} if scale == "small" else dict.fromkeys(ORDERS, self.rows[0])

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        """Whatever the context of the models, n-grams have their own."""
        return [
            m._replace(metric=f"{m.metric}_{context}" if len(contexts) > 1 else m.metric, table=table)
            for m in super().baseline(run, data, row) for table, contexts, _ in TABLES.values() for context in contexts
        ]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {"train_options": train_options(cell.row, cell.scale)}

    def dataset(self, cell: Cell) -> str:
        return describe(SETTINGS[cell.scale], cell.scale)

    def estimate(self, cell: Cell) -> Estimate:
        # at scale paper of one GPU
        minutes, disk = {"smoke": (0.5, 2.0), "paper": (60.0 * 24 * 8, 12000.0)}[cell.scale]
        return Estimate(minutes, disk)

    def prepare(self, run: Run) -> Path:
        return prepare_text(run, SETTINGS[run.cell.scale])

    def train(self, run: Run, data: Path) -> Path:
        options = train_options(run.cell.row, run.cell.scale)
        if run.cell.row.endswith(" from softmax"):
            cell = Cell(f"{parts(run.cell.row)[0]} BASE", run.cell.seed, run.cell.scale)
            softmax = Run(self, cell, run.root.parent, progress=run.progress, max_minutes=run.max_minutes)
            options += ["--finetune-from-model", str(self.train(softmax, data))]
        return run.fairseq_train(data / "bin", options, epochs=SETTINGS[run.cell.scale].epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        table, contexts, _ = TABLES[parts(run.cell.row)[0]]
        found = []
        for subset, name in (("valid", "validation"), ("test", "test")):
            for context in contexts:
                suffix = f"_{context}" if len(contexts) > 1 else ""
                value = perplexity(run, data, checkpoint, subset, context)
                found.append(Measurement(f"{name}_perplexity{suffix}", value, "perplexity", table=table))
        return [*found, Measurement("parameters", run.parameters, "parameters", table=table)]


recipe = BoundedMemoryLanguageModels()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
