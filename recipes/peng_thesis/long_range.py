"""Long texts in a transformer encoder (Peng 2022, Table 4.5; the Long Range Arena, Tay et al. 2021).

Scale paper has the arena's models and training; ListOps is drawn by its own generator, for the rows of IMDb and AAN
--from DIR is the folder that data-prep/imdb.sh or aan.sh made: texts byte by byte, pairs of them for AAN, cut after
4,000.
RFA has D = 64 on IMDb and 128 elsewhere, as the thesis; sizes of the other mechanisms are ours: blocks of 64 tokens,
256 slots and features.  No row drops attention weights, which most mechanisms do not have; residual dropout is that
of the architecture.  The table's speed and memory are measured by long_range_speed.py.
The rows of table 4.5-stand-in, at scales small and smoke, are ListOps with formulas of 100 to 300 tokens (10 to 30),
two layers of size 64, a few epochs; a mechanism's sizes are a quarter, and ABC-MLP is one row more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import text_classification

from seqstruct.data.listops.folder import write_folder
from seqstruct.data.listops.formulas import Options
from seqstruct.data.text_classification.folder import read_meta
from seqstruct.harness.command import main
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

BASE = "Transformer"
PLANS = {  # n: slots and features; length: of the longest text, the token put before it included
    "Transformer": "softmax",
    "RFA-Gaussian": "rfa(features={features})",
    "Linear": "linear",
    "ABC-MLP": "abc_mlp(slots={n})",
    "Performer": "performer(features={n})",
    "Linformer": "linformer(slots={n}, length={length})",
    "Local attention": "local_blocks(size={block})",
    "Big Bird": "bigbird(size={block})",
    "Sinkhorn": "sinkhorn(size={block})",
    "Reformer": "lsh(chunk={block})",
    "Synthesizer": "synthesizer(length={length})",
}
STAND_INS = tuple(f"ListOps {model}" for model in PLANS)
PUBLISHED = tuple(f"{task} {model}" for task in ("ListOps", "IMDb", "AAN") for model in PLANS if model != "ABC-MLP")


@dataclass(frozen=True)
class Setting:
    """What a scale and task choose.

    formulas: of ListOps to train on, validate and test each on a tenth (2,000 at scale paper).  lengths: of formulas,
    and the longest text.  sizes: layers, size, inner size, heads.  tied: whether layers share their parameters.
    rate: at its peak, after `warm_up` updates.
    """

    formulas: int
    lengths: tuple[int, int]
    sizes: tuple[int, int, int, int]
    tied: bool
    epochs: int
    updates: int
    rate: float
    warm_up: int
    weight_decay: float
    features: int
    n: int
    block: int


SETTINGS = {
    "smoke": Setting(200, (10, 30), (1, 16, 32, 2), False, 2, 14, 0.003, 2, 0.01, 8, 4, 4),
    "small": Setting(8000, (100, 300), (2, 64, 128, 4), False, 5, 1250, 0.002, 125, 0.01, 64, 64, 16),
    "ListOps": Setting(96000, (501, 1999), (6, 512, 2048, 8), True, 2, 5000, 0.05 / 1000**0.5, 1000, 0.1, 256, 256, 64),
    "IMDb": Setting(0, (1, 4000), (4, 256, 1024, 4), False, 30, 20000, 0.05 / 8000**0.5, 8000, 0.1, 128, 256, 64),
    "AAN": Setting(0, (1, 4000), (4, 128, 512, 4), False, 2, 5000, 0.05 / 8000**0.5, 8000, 0.1, 256, 256, 64),
}  # fmt: skip


def setting_of(cell: Cell) -> Setting:
    """That of the scale, at scale paper that of the task."""
    return SETTINGS[cell.row.partition(" ")[0] if cell.scale == "paper" else cell.scale]


def plan(model: str, setting: Setting, longest: int) -> str:
    """The attention of all layers, for texts of at most `longest` tokens."""
    return PLANS[model].format(features=setting.features, n=setting.n, block=setting.block, length=longest + 1)


def train_options(cell: Cell) -> list[str]:
    """fairseq-train's options; data, seed and epochs apart."""
    setting, model = setting_of(cell), cell.row.partition(" ")[2]
    layers, size, inner, heads = setting.sizes
    longest = setting.lengths[1]
    return [
        "--task", "text_classification", "--max-length", str(longest), "--criterion", "classification_cross_entropy",
        "--arch", "structured_transformer_classifier", "--encoder-self-attention", plan(model, setting, longest),
        "--encoder-layers", str(layers), "--encoder-embed-dim", str(size), "--encoder-ffn-embed-dim", str(inner),
        "--encoder-attention-heads", str(heads), "--attention-dropout", "0", "--max-source-positions", str(longest + 1),
        *(["--tie-layers"] if setting.tied else []), "--batch-size", "32", "--required-batch-size-multiple", "1",
        "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--adam-eps", "1e-9",
        "--weight-decay", f"{setting.weight_decay:g}", "--lr", f"{setting.rate:.6g}", "--lr-scheduler", "inverse_sqrt",
        "--warmup-updates", str(setting.warm_up), "--max-update", str(setting.updates), "--valid-subset", "valid,test",
        "--best-checkpoint-metric", "accuracy", "--maximize-best-checkpoint-metric",
    ]  # fmt: skip


class LongRange(Recipe):
    """Test accuracy at the epoch of the greatest validation accuracy; speed and memory by length."""

    paper = "peng_thesis"
    table = "4.5"
    stand_in = "4.5-stand-in"
    family = "efficient attention classifiers"
    rows = tuple(dict.fromkeys((*STAND_INS, *PUBLISHED)))
    smoke_rows = ("ListOps ABC-MLP",)
    licence = "ListOps is made; IMDb, AAN: for research"
    progress_metric = "accuracy"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """The published rows at scale paper, those of ListOps at the others."""
        rows = PUBLISHED if scale == "paper" else STAND_INS
        return [cell for cell in super().cells(scale, seeds) if cell.row in rows]

    def baselines(self, scale: str) -> Mapping[str, str]:
        tasks = ("ListOps", "IMDb", "AAN") if scale == "paper" else ("ListOps",)
        return {f"{task} {name}": f"{task} {BASE}" for task in tasks for name in ("majority", "first token")}

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {**asdict(setting_of(cell)), "train_options": train_options(cell)}

    def dataset(self, cell: Cell) -> str:
        setting, task = setting_of(cell), cell.row.partition(" ")[0]
        if not setting.formulas:
            return f"{task} by bytes, cut after {setting.lengths[1]}, as its script of data-prep makes it"
        least, most = setting.lengths
        text = f"{setting.formulas} formulas of {least} to {most} tokens, {setting.updates} updates"
        if cell.scale != "paper":
            text += f", {setting.sizes[0]} layers of size {setting.sizes[1]} (published: 96000, 501 to 1999, 6 of 512)"
        return text

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.4, "small": 7.0, "paper": 60.0 * 12}[cell.scale]
        return Estimate(minutes, disk={"smoke": 1.0, "small": 15.0, "paper": 900.0}[cell.scale])

    def prepare(self, run: Run) -> Path:
        setting, task = setting_of(run.cell), run.cell.row.partition(" ")[0]
        if run.cell.scale != "paper" and run.cell.row not in STAND_INS:
            raise ValueError(f"row {run.cell.row}: at scale paper alone")
        if setting.formulas:
            least, most = setting.lengths
            held_out = 2000 if run.cell.scale == "paper" else setting.formulas // 10
            counts = {"train": setting.formulas, "valid": held_out, "test": held_out}
            return run.prepared(
                f"listops-{least}-{most}-{setting.formulas}",
                lambda folder: write_folder(folder, Options((least, most)), counts, seed=1) and None,
            )
        if run.source is None:
            raise ValueError(f"row {run.cell.row}: --from DIR is the folder that data-prep made of {task}")
        if bool(read_meta(run.source).get("pairs")) != (task == "AAN"):
            expected = "pairs of texts" if task == "AAN" else "single texts"
            raise ValueError(f"{run.source}: expected {expected} of {task}")
        return run.source

    def train(self, run: Run, data: Path) -> Path:
        return run.fairseq_train(data, train_options(run.cell), epochs=setting_of(run.cell).epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        log = run.folder / "train.log"
        best = text_classification.best_epoch(parse_lines(log.read_text(encoding="utf-8").splitlines()))
        return [
            Measurement("validation_accuracy", best["valid_accuracy"], "%"),
            Measurement("test_accuracy", best["test_accuracy"], "%"),
            Measurement("parameters", run.parameters, "parameters"),
        ]


recipe = LongRange()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
