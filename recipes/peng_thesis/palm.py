"""PaLM on the Penn Treebank (thesis, chapter 3, Tables 3.1, 3.3 and 3.4): perplexity, unlabeled F1, branching.

Scale paper takes .mrg trees of the Linguistic Data Consortium's treebank (--from, the folder parsed/mrg/wsj), and
makes Mikolov's kind of text of them.  Scale small takes nltk's sample of the treebank, two layers of size 200 and few
epochs; scale smoke made-up sentences.  The test set's trees are parsed by `seqstruct parse`: F1 on sentences of at most
40 and at most 10 words, with the left span's score added (note 7), and by the convention of sentences.

Row "PaLM-U last layer" attends after the last layer (note 9).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.data.aligned import read_lines
from seqstruct.data.made_up.trees import ptb_trees as write_made_up
from seqstruct.data.parsed_text import prepare
from seqstruct.harness.baselines import ORDERS
from seqstruct.harness.command import main
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.process import fairseq
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run

MODELS = {
    "AWD-LSTM": ("--arch", "awd_lstm"),
    "PRPN": ("--arch", "prpn"),
    "ON-LSTM": ("--arch", "on_lstm"),
    "PaLM-U": ("--arch", "palm"),
    "PaLM-RB": ("--arch", "palm_right_branching"),
    "PaLM-S": ("--arch", "palm", "--span-supervision", "0.01"),
    "PaLM-U last layer": ("--arch", "palm"),
}
PARSERS = tuple(row for row in MODELS if row != "AWD-LSTM")
SMALL_DROPOUTS = (
    "--dropout", "0.3", "--input-dropout", "0.3", "--hidden-dropout", "0.2", "--embedding-dropout", "0.05",
    "--weight-dropout", "0.3",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    vocabulary: types kept.  layers, embed_dim, hidden_size: 0 for the architecture's own.  segment: tokens of a
    segment.  epochs: at most.  switch: epochs of Adam before averaged SGD.  lr, averaged_lr: before and after.
    """

    vocabulary: int
    layers: int
    embed_dim: int
    hidden_size: int
    max_span: int
    segment: int
    batch_size: int
    epochs: int
    switch: int
    lr: float
    averaged_lr: float


SETTINGS = {
    "smoke": Setting(200, 2, 20, 30, 5, 15, 4, 2, 1, 0.01, 1.0),
    "small": Setting(10000, 2, 100, 200, 10, 35, 10, 6, 5, 0.004, 5.0),
    "paper": Setting(10000, 0, 0, 0, 20, 70, 20, 500, 40, 0.001, 30.0),
}


def train_options(row: str, setting: Setting, models: Mapping[str, Sequence[str]] = MODELS) -> list[str]:
    """fairseq-train's options; data, seed and epochs apart."""
    palm = row.startswith("PaLM")
    options = ["--task", "span_language_modeling", "--criterion", "regularized_cross_entropy", *models[row]]
    layers = setting.layers or 3
    if setting.layers:
        options += ["--decoder-layers", str(layers), "--decoder-embed-dim", str(setting.embed_dim)]
        options += ["--hidden-size", str(setting.hidden_size), *SMALL_DROPOUTS]
        options += ["--span-size", str(setting.hidden_size // 4)] if palm else []
    if palm:
        options += ["--max-span", str(setting.max_span)]
        options += ["--attention-layer", str(layers if row.endswith("last layer") else layers - 1)]
    if row == "PRPN":
        options += ["--activation-penalty", "0", "--temporal-activation-penalty", "0"]
    first, lr, switch = ("--first", "adam"), setting.lr, ("--switch-epoch", str(setting.switch))
    if not setting.layers and row == "ON-LSTM":  # as released: NT-ASGD
        first, lr, switch = ("--first", "sgd"), 30.0, ("--switch-epoch", "0", "--nonmonotone", "5")
    elif not setting.layers and row == "PRPN":  # as released: Adam to the end
        switch = ("--switch-epoch", "0")
    return [
        *options, "--optimizer", "averaged_sgd", *first, "--lr", f"{lr:g}", "--lr-scheduler", "averaging_switch",
        *switch, "--averaged-lr", f"{setting.averaged_lr:g}", "--clip-norm", "0.25", "--random-segments",
        "--batch-size", str(setting.batch_size), "--tokens-per-sample", str(setting.segment),
        "--required-batch-size-multiple", "1",
    ]  # fmt: skip


def prepared_trees(run: Run, vocabulary: int) -> Path:
    """The prepared treebank of the run's scale.  Raises ValueError where there is none."""
    if run.cell.scale == "smoke":
        source, corpus = run.prepared("made-up-trees", write_made_up), "treebank-sample"
    else:
        corpus = "ptb" if run.cell.scale == "paper" else "treebank-sample"
        folder = run.source if corpus == "ptb" else run.raw_data("nltk")
        if folder is None:
            raise ValueError(
                "the treebank is licensed and is not downloaded: --from names the folder parsed/mrg/wsj (scale paper) "
                "or one that holds nltk's treebank.zip (scale small)"
            )
        source = folder if corpus == "ptb" else folder / "treebank.zip"
    return run.prepared(
        f"trees-{corpus}-{run.cell.scale}-{vocabulary}",
        lambda out: prepare(corpus, source, out, vocabulary=vocabulary, leave_out_longer=True) and None,
    )


def perplexities(run: Run, binarised: Path, checkpoint: Path, task: str) -> dict[str, float]:
    """Of the validation and the test set, by word, EOS counted, each read as one stream."""
    log = run.folder / "validate.log"
    log.unlink(missing_ok=True)
    run.command(
        [*fairseq("validate"), binarised, "--user-dir", PLUGIN, "--task", task, "--criterion",
         "regularized_cross_entropy", "--path", checkpoint, "--valid-subset", "valid,test", "--batch-size", "1",
         "--log-format", "json", "--num-workers", "0", *(["--cpu"] if run.cell.scale != "paper" else [])],
        log.name,
    )  # fmt: skip
    found = {}
    for entry in parse_lines(log.read_text(encoding="utf-8").splitlines()):
        if f"{entry.tag}_nll_loss" in entry.statistics:
            found[entry.tag] = 2 ** entry.statistics[f"{entry.tag}_nll_loss"]
    return found


def parse_scores(run: Run, trees: Path, *options: str | Path) -> dict[str, Any]:
    """What `seqstruct parse --format json` says of a file of gold trees."""
    log = run.folder / "parse.log"
    run.command([sys.executable, "-m", "seqstruct", "parse", trees, "--format", "json", *options], log.name)
    lines = [line for line in read_lines(log) if line.startswith("{")]
    if not lines:
        raise ValueError(f"{log}: expected scores, found none")
    return json.loads(lines[-1])


def parse_measurements(run: Run, trees: Path, options: Sequence[str | Path]) -> list[Measurement]:
    """F1 and branching on test sentences of at most 40 words."""
    whole = parse_scores(run, trees, *options)
    return [
        Measurement("unlabeled_f1", whole["f1"], "%", table=table_of("3.3", run.cell)),
        Measurement("left_splits", whole["left_splits"], "%", table=table_of("3.4", run.cell)),
        Measurement("right_splits", whole["right_splits"], "%", table=table_of("3.4", run.cell)),
    ]


def table_of(published: str, cell: Cell) -> str:
    """That of the thesis, or at the other scales what stands in for it."""
    return published if cell.scale == "paper" else f"{published}-stand-in"


def more_parse_measurements(run: Run, trees: Path, options: Sequence[str | Path], left: bool) -> list[Measurement]:
    """F1 by the convention of sentences, of WSJ-10 (note 12), and, with `left`, with the left span's score (note 7)."""
    ways = {"sentence_f1": ("--convention", "sentence"), "wsj_10_unlabeled_f1": ("--max-words", "10")}
    if left:
        ways["left_score_unlabeled_f1"] = ("--left-score",)
    return [
        Measurement(metric, parse_scores(run, trees, *options, *way)["f1"], "%", table=table_of("3.3", run.cell))
        for metric, way in ways.items()
    ]


class PaLM(Recipe):
    """Perplexity of each model, and for those that parse, how well."""

    paper = "peng_thesis"
    table = "3.1"
    stand_in = "3.1-stand-in"
    family = "parsing language models"
    rows = tuple(MODELS)
    smoke_rows = ("PaLM-S",)
    licence = "Penn Treebank: LDC99T42; nltk's sample: non-commercial; smoke: none needed, the sentences are made up"

    def baselines(self, scale: str) -> Mapping[str, str]:
        return dict.fromkeys(ORDERS, "AWD-LSTM")

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        return {**asdict(setting), "train_options": train_options(cell.row, setting)}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        if cell.scale == "smoke":
            return "160 made-up sentences with trees"
        text = f"at most {setting.epochs} epochs, {setting.switch} of Adam, then averaged SGD"
        if cell.scale == "paper":
            return f"PTB trees, sections 00-20, 21-22, 23-24, as Mikolov's text, {text}"
        return (
            f"nltk's sample of the PTB (3396 sentences, 75,000 words to train), {setting.layers} layers of size "
            f"{setting.hidden_size}, word vectors of {setting.embed_dim}, spans of at most {setting.max_span}, {text} "
            "(published: 930,000 words, 3 layers of size 1020 to 1150, Adam for 40 epochs)"
        )

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.4, "small": 4.0, "paper": 1500.0}[cell.scale]
        return Estimate(minutes * {"PRPN": 1.5, "AWD-LSTM": 0.7}.get(cell.row, 1.0), disk=400.0 if
                        cell.scale == "paper" else 30.0)

    def prepare(self, run: Run) -> Path:
        return prepared_trees(run, SETTINGS[run.cell.scale].vocabulary)

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        return run.fairseq_train(data / "bin", train_options(run.cell.row, setting), epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        found = perplexities(run, data / "bin", checkpoint, "span_language_modeling")
        measured = [
            Measurement("validation_perplexity", found["valid"], "perplexity"),
            Measurement("test_perplexity", found["test"], "perplexity"),
            Measurement("parameters", run.parameters, "parameters"),
        ]
        if run.cell.row in PARSERS:
            options = ["--checkpoint", checkpoint, "--data", data / "bin", "--lowercase"]
            learned = run.cell.row.startswith("PaLM") and run.cell.row != "PaLM-RB"
            trees = data / "trees" / "test.mrg"
            measured += parse_measurements(run, trees, options) + more_parse_measurements(run, trees, options, learned)
        return measured


recipe = PaLM()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
