"""Recurrent translation models of the lectures on Multi30k (Elliott et al. 2016), English to German, test_2016_flickr.

Each row is a preset of `rnn_translation`.  Scale paper keeps the published sizes, which are for corpora a hundred times
as large; scale small has layers of size 128 (two where the paper has four, four where it has eight) and five epochs;
scale smoke a few hundred made-up sentence pairs, which prove nothing.  Joint BPE, beam 5, sacreBLEU on the raw
references.  A run with attention leaves attention.png, the weights of one test sentence and its reference; that of
grConv soft_tree.png, its encoder's tree.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.data.parallel import read_lines
from seqstruct.harness import plot
from seqstruct.harness.command import main
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.plot_tree import soft_tree, soft_tree_gates
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.harness.translate import generate, validation_perplexity
from seqstruct.scoring.hypotheses import read_generate, to_text
from seqstruct.scoring.translation import score

ROOT = Path(__file__).resolve().parents[2]
SOURCE, TARGET = "en", "de"
DECODE = ("--gen-subset", "test", "--beam", "5", "--lenpen", "1", "--max-len-a", "1.5", "--max-len-b", "10")


@dataclass(frozen=True)
class Model:
    """A row: its preset, layers of each side where sizes are small, and an attention other than the preset's."""

    preset: str
    layers: int = 2
    attention: str = ""


MODELS = {
    "RNN encoder-decoder": Model("rnn_encoder_decoder", layers=1),
    "Sutskever": Model("rnn_sutskever"),
    "RNNsearch": Model("rnnsearch", layers=1),
    "Luong dot": Model("rnn_luong_global"),
    "Luong general": Model("rnn_luong_global", attention="luong(score='general')"),
    "Luong local-p": Model("rnn_luong_local_p"),
    "GNMT": Model("rnn_gnmt", layers=4),
    "grConv": Model("rnn_gated_convolution", layers=1),
    "Luong location": Model("rnn_luong_global", attention="location"),
    "Luong concat": Model("rnn_luong_global", attention="luong(score='concat')"),
    "Luong local-m": Model("rnn_luong_local_m"),
}


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    size: of embeddings, hidden states and maxout, None for the preset's own.  vocabulary: joint BPE types.
    batch: sentences.  epochs, updates: of training; the learning rate falls to 0 after so many updates.
    """

    size: int | None
    vocabulary: int
    batch: int
    epochs: int
    updates: int
    learning_rate: float
    dropout: float | None


SETTINGS = {
    "smoke": Setting(32, 150, 20, 6, 120, 0.01, 0.0),
    "small": Setting(128, 5000, 64, 5, 2270, 0.003, 0.2),
    "paper": Setting(None, 10000, 80, 20, 7260, 0.0005, None),
}


def train_options(cell: Cell) -> list[str]:
    """fairseq-train's options, data, seed and epochs apart."""
    model, setting = MODELS[cell.row], SETTINGS[cell.scale]
    options = ["--task", "translation", "--source-lang", SOURCE, "--target-lang", TARGET, "--arch", model.preset]
    if model.attention:
        options += ["--cross-attention", model.attention]
    if setting.size is not None:
        for name in ("embed-dim", "hidden-size", "maxout-size"):
            options += [f"--{name}", str(setting.size)]
        options += ["--encoder-layers", str(model.layers), "--decoder-layers", str(model.layers)]
        options += ["--initialization", "uniform", "--initialization-bound", "0.1"]
        if model.preset == "rnnsearch":
            options += ["--cross-attention", "additive"]
    if setting.dropout is not None:
        options += ["--dropout", f"{setting.dropout:g}"]
    return [
        *options, "--criterion", "structured_cross_entropy", "--label-smoothing", "0.1", "--optimizer", "adam",
        "--lr", f"{setting.learning_rate:g}", "--clip-norm", "1", "--lr-scheduler", "polynomial_decay",
        "--warmup-updates", str(setting.updates // 20), "--total-num-update", str(setting.updates),
        "--batch-size", str(setting.batch),
    ]  # fmt: skip


class RecurrentModels(Recipe):
    """BLEU and chrF on test_2016_flickr, perplexity on the validation set."""

    paper = "nmt_lectures"
    table = "multi30k"
    family = "recurrent translation lineage"
    rows = tuple(MODELS)
    smoke_rows = ("RNNsearch",)
    seeds = {"smoke": 1, "small": 1, "paper": 1}
    licence = "Multi30k: for research; made-up sentences at the smoke scale: none needed"

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = asdict(SETTINGS[cell.scale])
        return {**setting, "train_options": train_options(cell), "decode_options": DECODE}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        text = f"joint BPE of {setting.vocabulary} types, {setting.epochs} epochs"
        if cell.scale == "smoke":
            return f"400 made-up sentence pairs, {text}"
        return f"Multi30k en-de task 1, 29000 pairs, test_2016_flickr, {text}"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.4, "small": 8.0, "paper": 900.0}[cell.scale]
        slower = 1.5 if cell.row in ("GNMT", "grConv") else 1.0
        download = 0.0 if cell.scale == "smoke" else 1.3
        return Estimate(minutes * slower, {"smoke": 2.0, "small": 60.0, "paper": 2000.0}[cell.scale], download)

    def prepare(self, run: Run) -> Path:
        setting = SETTINGS[run.cell.scale]
        words = ["env", f"PYTHON={sys.executable}", "bash", ROOT / "data-prep" / "multi30k.sh"]
        words += ["--src", SOURCE, "--trg", TARGET, "--vocabulary", str(setting.vocabulary)]
        if run.cell.scale == "smoke":
            neighbour = load_recipe(ROOT / "recipes" / "multi30k" / "multi30k.py")
            made_up = run.prepared("multi30k-made-up", sys.modules[type(neighbour).__module__].write_made_up)
            words += ["--from", made_up, "--unchecked"]
        else:
            source = run.raw_data("multi30k")
            words += ["--from", source] if source else []

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell}: preparing the corpus")
            run.command([*words, "--out", folder])

        return run.prepared(f"multi30k-{SOURCE}-{TARGET}-{run.cell.scale}-bpe{setting.vocabulary}", make)

    def train(self, run: Run, data: Path) -> Path:
        return run.fairseq_train(data / "bin", train_options(run.cell), epochs=SETTINGS[run.cell.scale].epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        references = list(read_lines(data / "raw" / f"test.{TARGET}"))
        decoded = generate(run, data / "bin", checkpoint, (SOURCE, TARGET), DECODE)
        hypotheses = to_text(read_generate(read_lines(decoded), str(decoded), len(references)), "bpe", TARGET)
        bleu, chrf = score(hypotheses, [references])
        run.progress.say(f"{run.cell}: {bleu.signature}")
        source, target = (next(iter(read_lines(data / "text" / f"test.{side}"))) for side in (SOURCE, TARGET))
        if run.cell.row == "grConv":
            words, gates = soft_tree_gates(checkpoint, source, data=data / "bin")
            plot.save(soft_tree(words, gates, run.cell.row), run.folder / "soft_tree.png")
        elif views := plot.layer_views(checkpoint, source, target=target, data=data / "bin"):
            plot.save(plot.attention(views, run.cell.row), run.folder / "attention.png")
        return [
            Measurement("validation_perplexity", validation_perplexity(run), "perplexity"),
            Measurement("test_bleu", bleu.value, "BLEU"),
            Measurement("test_chrf", chrf.value, "chrF2"),
        ]


recipe = RecurrentModels()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
