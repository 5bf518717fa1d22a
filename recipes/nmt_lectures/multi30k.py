"""The models of the lectures on Multi30k (Elliott et al. 2016), English to German, test_2016_flickr.

Recurrent rows are presets of `rnn_translation`, ConvS2S is fairseq's `fconv`, Transformers are
`structured_transformer`; "linear attention" is in the self-attention of both sides.  Scale paper keeps the published
sizes, which are for corpora a hundred times as large.  Scale small has layers of size 128 (recurrent models two where
the paper has four, four where it has eight; ConvS2S 4 + 3, the Transformer 3 + 3) and five epochs, ten minutes of one
thread, too little for any of them.  Scale smoke takes a few hundred made-up sentence pairs, which prove nothing.
Subwords are joint: BPE of subword-nmt or unigram pieces of SentencePiece; "sampled" rows train on segmentations drawn
anew in each epoch (subword regularization, Kudo 2018; BPE dropout, Provilkov et al. 2020).  Beam 5; hypotheses are
compared by log-probability divided by length, and the other GNMT rows decode that row's model in other ways.

A run with attention leaves attention.png, the weights of one test sentence and its reference; that of grConv
soft_tree.png, its encoder's tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from systems import DECODE, LENGTHS, Corpus, System, TranslationRecipe, compact

from seqstruct.data.parallel import read_lines
from seqstruct.harness import plot
from seqstruct.harness.command import main
from seqstruct.harness.plot_tree import soft_tree, soft_tree_gates
from seqstruct.harness.recipe import Cell, Estimate, Measurement
from seqstruct.harness.run import Run

LINEAR = ("--encoder-self-attention", "linear", "--decoder-self-attention", "linear")


@dataclass(frozen=True)
class Model:
    """A row: its preset, layers of each side where sizes are small, and an attention other than the preset's.

    family: of the options that a scale chooses.  more: options of fairseq-train beside those.  subwords, sampled,
    decode, members: as of `System`; a member's seed is the cell's where it is 0.
    """

    preset: str = ""
    layers: int = 2
    attention: str = ""
    family: str = "recurrent"
    more: tuple[str, ...] = ()
    subwords: str = "bpe"
    sampled: tuple[str, ...] = ()
    decode: tuple[str, ...] = DECODE
    members: tuple[tuple[str, int], ...] = ()


def _transformer(**changes: object) -> Model:
    return Model("structured_transformer", family="transformer", **changes)


def _gnmt(alpha: float, beta: float, *more: str) -> Model:
    """The GNMT row's model, decoded by eq. 14 of Wu et al. (2016)."""
    penalties = ("--task", "translation_gnmt", "--length-alpha", f"{alpha:g}", "--coverage-beta", f"{beta:g}")
    return Model(members=(("GNMT", 0),), decode=(*penalties, *more, "--beam", "5", *LENGTHS))


MODELS = {
    "RNN encoder-decoder": Model("rnn_encoder_decoder", layers=1),
    "Sutskever": Model("rnn_sutskever"),
    "RNNsearch": Model("rnnsearch", layers=1),
    "grConv": Model("rnn_gated_convolution", layers=1),
    "Luong dot": Model("rnn_luong_global"),
    "Luong general": Model("rnn_luong_global", attention="luong(score='general')"),
    "Luong local-p": Model("rnn_luong_local_p"),
    "GNMT": Model("rnn_gnmt", layers=4),
    "ConvS2S": Model("fconv", family="convolution"),
    "Transformer": _transformer(),
    "Transformer, linear attention": _transformer(more=LINEAR),
    "Transformer, BPE sampled": _transformer(sampled=("--bpe-dropout", "0.1")),
    "Transformer, unigram": _transformer(subwords="sentencepiece"),
    "Transformer, unigram sampled": _transformer(
        subwords="sentencepiece", sampled=("--sampling-alpha", "0.2", "--sampling-nbest", "-1")
    ),
    "Transformer, ensemble of 2": Model(members=(("Transformer", 1), ("Transformer", 2))),
    "GNMT, no penalties": _gnmt(0.0, 0.0),
    "GNMT, length normalisation": _gnmt(0.2, 0.0),
    "GNMT, coverage": _gnmt(0.0, 0.2),
    "GNMT, length normalisation and coverage": _gnmt(0.2, 0.2),
    "GNMT, 8 bits": _gnmt(0.2, 0.2, "--eight-bit"),
    "Luong location": Model("rnn_luong_global", attention="location"),
    "Luong concat": Model("rnn_luong_global", attention="luong(score='concat')"),
    "Luong local-m": Model("rnn_luong_local_m"),
}


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    size: of embeddings, hidden states and maxout, None for the preset's own.  vocabulary, pieces: joint types of BPE
    and of SentencePiece.  batch: sentences.  epochs, updates: of training; the learning rate falls to 0 after so many.
    learning_rate: by family.
    """

    size: int | None
    vocabulary: int
    pieces: int
    batch: int
    epochs: int
    updates: int
    learning_rate: dict[str, float]
    dropout: float | None


SMALL_RATES = {"recurrent": 0.003, "convolution": 0.003, "transformer": 0.004}
SETTINGS = {
    "smoke": Setting(32, 150, 50, 20, 6, 120, dict.fromkeys(SMALL_RATES, 0.005), 0.0),
    "small": Setting(128, 5000, 5000, 64, 5, 2270, SMALL_RATES, 0.2),
    "paper": Setting(None, 10000, 10000, 80, 20, 7260, dict.fromkeys(SMALL_RATES, 0.0005), None),
}


def vocabulary(cell: Cell) -> int:
    """Joint types of the row's subwords."""
    setting = SETTINGS[cell.scale]
    return setting.pieces if MODELS[cell.row].subwords == "sentencepiece" else setting.vocabulary


def architecture(model: Model, size: int | None) -> list[str]:
    """fairseq-train's options for a model that is no small Transformer, dropout apart."""
    if model.family == "transformer":
        return ["--arch", "structured_transformer", "--share-all-embeddings", *model.more]
    if model.family == "convolution":
        if size is None:
            return ["--arch", "fconv"]
        return [
            "--arch", "fconv", "--encoder-embed-dim", str(size), "--encoder-layers", f"[({size}, 3)] * 4",
            "--decoder-embed-dim", str(size), "--decoder-layers", f"[({size}, 3)] * 3",
            "--decoder-out-embed-dim", str(size),
        ]  # fmt: skip
    options = ["--arch", model.preset]
    if model.attention:
        options += ["--cross-attention", model.attention]
    if size is not None:
        for name in ("embed-dim", "hidden-size", "maxout-size"):
            options += [f"--{name}", str(size)]
        options += ["--encoder-layers", str(model.layers), "--decoder-layers", str(model.layers)]
        options += ["--initialization", "uniform", "--initialization-bound", "0.1"]
        if model.preset == "rnnsearch":
            options += ["--cross-attention", "additive"]
    return options


def train_options(cell: Cell) -> list[str]:
    """fairseq-train's options, data, task, languages, seed and epochs apart."""
    model, setting = MODELS[cell.row], SETTINGS[cell.scale]
    rate, updates = setting.learning_rate[model.family], setting.updates
    common = ["--optimizer", "adam", "--label-smoothing", "0.1", "--batch-size", str(setting.batch)]
    if model.family == "transformer" and setting.size is not None:
        small = compact(setting.size, 2 * setting.size, updates, rate)
        return [*small, *model.more, "--criterion", "label_smoothed_cross_entropy", *common]
    options = architecture(model, setting.size)
    if setting.dropout is not None:
        options += ["--dropout", f"{setting.dropout:g}"]
    criterion = "structured_cross_entropy" if model.family == "recurrent" else "label_smoothed_cross_entropy"
    return [
        *options, "--criterion", criterion, "--lr", f"{rate:g}", "--clip-norm", "1", "--lr-scheduler",
        "polynomial_decay", "--warmup-updates", str(updates // 20), "--total-num-update", str(updates), *common,
    ]  # fmt: skip


class Lineage(TranslationRecipe):
    """BLEU, chrF, sizes and speeds on test_2016_flickr, perplexity on the validation set."""

    table = "multi30k"
    family = "translation lineage"
    rows = tuple(MODELS)
    smoke_rows = ("RNNsearch", "Transformer, unigram sampled")
    seeds = {"smoke": 1, "small": 1, "paper": 1}
    licence = "Multi30k: for research; made-up sentences at the smoke scale: none needed"

    def system(self, cell: Cell) -> System:
        model, setting = MODELS[cell.row], SETTINGS[cell.scale]
        corpus = Corpus(subwords=model.subwords, vocabulary=str(vocabulary(cell)))
        if model.members:
            members = tuple((row, seed or cell.seed) for row, seed in model.members)
            return System(corpus, decode=model.decode, members=members)
        return System(corpus, tuple(train_options(cell)), setting.epochs, model.sampled, decode=model.decode)

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        kind = "unigram pieces" if MODELS[cell.row].subwords == "sentencepiece" else "BPE"
        text = f"joint {kind} of {vocabulary(cell)} types, {setting.epochs} epochs"
        if cell.scale == "smoke":
            return f"400 made-up sentence pairs, {text}"
        return f"Multi30k en-de task 1, 29000 pairs, test_2016_flickr, {text}"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.4, "small": 8.0, "paper": 900.0}[cell.scale]
        slower = 1.5 if cell.row in ("GNMT", "grConv") else 1.0
        model = MODELS[cell.row]
        times = max(1, len(model.members))
        download = 0.0 if cell.scale == "smoke" else 1.3
        return Estimate(minutes * slower * times, {"smoke": 2.0, "small": 60.0, "paper": 2000.0}[cell.scale], download)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        found = super().evaluate(run, data, checkpoint)
        model = MODELS[run.cell.row]
        source, target = (next(iter(read_lines(data / "text" / f"test.{side}"))) for side in ("en", "de"))
        if run.cell.row == "grConv":
            words, gates = soft_tree_gates(checkpoint, source, data=data / "bin")
            plot.save(soft_tree(words, gates, run.cell.row), run.folder / "soft_tree.png")
        elif model.preset.startswith("rnn") or model.preset == "structured_transformer":
            views = plot.layer_views(checkpoint, source, target=target, data=data / "bin")
            if views:
                plot.save(plot.attention(views, run.cell.row), run.folder / "attention.png")
        return found


recipe = Lineage()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
