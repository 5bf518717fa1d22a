"""The models of the lectures as options of fairseq-train, at three sizes."""

from __future__ import annotations

from dataclasses import dataclass

from systems import DECODE, LENGTHS, compact

from seqstruct.harness.recipe import Cell

# rnn_sutskever but for the order in which it reads
FORWARD = (
    "--cell", "lstm", "--cross-attention", "none", "--output", "plain", "--embed-dim", "1000", "--hidden-size", "1000",
    "--encoder-layers", "4", "--decoder-layers", "4", "--dropout", "0", "--initialization-bound", "0.08",
)  # fmt: skip
LINEAR = ("--encoder-self-attention", "linear", "--decoder-self-attention", "linear")


@dataclass(frozen=True)
class Model:
    """A row: its preset, layers of each side where sizes are small, and an attention other than the preset's.

    family: of the options that a scale chooses.  more: options of fairseq-train beside those.  subwords, sampled,
    decode, members: as of `System`; a member's seed is the cell's where it is 0.  epochs: if not the scale's.
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
    epochs: int | None = None


def _transformer(**changes: object) -> Model:
    return Model("structured_transformer", family="transformer", **changes)


def _gnmt(alpha: float, beta: float, *more: str) -> Model:
    """The GNMT row's model, decoded by eq. 14 of Wu et al. (2016)."""
    penalties = ("--task", "translation_gnmt", "--length-alpha", f"{alpha:g}", "--coverage-beta", f"{beta:g}")
    return Model(members=(("GNMT", 0),), decode=(*penalties, *more, "--beam", "5", *LENGTHS))


MODELS = {
    "RNN encoder-decoder": Model("rnn_encoder_decoder", layers=1),
    "Sutskever": Model("rnn_sutskever"),
    "Sutskever, source not reversed": Model("rnn_translation", more=FORWARD),
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
    "Transformer, unigram sampled of 64 best": _transformer(
        subwords="sentencepiece", sampled=("--sampling-alpha", "0.1", "--sampling-nbest", "64")
    ),
    "Transformer, words": _transformer(subwords="words"),
    "Transformer, words and characters": _transformer(subwords="mixed"),
    "Transformer, characters": _transformer(subwords="characters", epochs=2),
    "Transformer, words to unigram": _transformer(subwords="words,sentencepiece"),
    "Transformer, unigram to words": _transformer(subwords="sentencepiece,words"),
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
    "smoke": Setting(32, 150, 35, 20, 6, 120, dict.fromkeys(SMALL_RATES, 0.005), 0.0),
    "small": Setting(128, 5000, 5000, 64, 5, 2270, SMALL_RATES, 0.2),
    "paper": Setting(None, 10000, 10000, 80, 20, 7260, dict.fromkeys(SMALL_RATES, 0.0005), None),
}


def vocabulary(cell: Cell) -> str:
    """Types of the row's subwords, of both languages or of each."""
    setting = SETTINGS[cell.scale]
    kinds = MODELS[cell.row].subwords.split(",")
    sizes = [setting.pieces if kind == "sentencepiece" else setting.vocabulary for kind in kinds]
    return ",".join(map(str, sizes))


def epochs(cell: Cell) -> int:
    """Of the row's training."""
    return MODELS[cell.row].epochs or SETTINGS[cell.scale].epochs


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
    options = ["--arch", model.preset, *model.more]
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
    rate, updates = setting.learning_rate[model.family], setting.updates * epochs(cell) // setting.epochs
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
