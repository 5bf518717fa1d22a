"""Text classification (Peng 2022, Table 6.5): LSTM and four rational recurrences on Amazon, SST, subj and CR.

For each row the settings of Table E.1 are drawn at random, the draw of the greatest validation accuracy is trained
anew with each seed, and the test accuracy is that of the epoch of the greatest validation accuracy.  Scale paper is
the published setting, with GloVe vectors of 300 dimensions, unit length and fixed: --from then names a folder with
both the raw corpora and glove.840B.300d.txt.  Scale small learns its word vectors, has hidden sizes at the low end of
the published range, fewer and shorter draws and a few epochs, so that 8 draws and 5 seeds of a row take some minutes.

subj and CR have no official splits: 80, 10 and 10 percent are drawn once, for all models and seeds.  l2 regularisation
is fairseq's weight decay in Adam, which is decoupled from the gradient.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqstruct.data.files import atomic_write
from seqstruct.harness.command import main
from seqstruct.harness.logs import LogEntry, parse_lines
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run, read_json, slug
from seqstruct.harness.trainings import run_trainings

SCRIPT = Path(__file__).resolve().parents[2] / "data-prep" / "text_classification.sh"
CORPORA = {"Amazon": "amazon", "SST": "sst", "subj": "subj", "CR": "cr"}
MODELS = {
    "LSTM": "LSTM", "RRNN(B)": "B", "RRNN(C)": "C", "RRNN(B) max-plus": "B_max_plus", "RRNN(F)": "F",
}  # fmt: skip
ROWS = tuple(f"{corpus} {model}" for corpus in CORPORA for model in MODELS)
RATES = ("vertical_dropout", "recurrent_dropout", "embedding_dropout")


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    draws: settings drawn for a row.  draw_epochs, epochs: at most, of a draw and of the final runs; on CR, the smallest
    corpus, cr_factor times as many.  patience, lr_patience: epochs without a better validation accuracy after which
    training ends, and the learning rate is halved.  hidden_size: ends of the draw.  embed_dim: of learned word vectors,
    0: GloVe.  min_count: occurrences in training that a word needs, where vectors are learned.
    """

    draws: int
    draw_epochs: int
    epochs: int
    cr_factor: int
    patience: int
    lr_patience: int
    hidden_size: tuple[int, int]
    embed_dim: int
    min_count: int


SETTINGS = {
    "smoke": Setting(2, 1, 3, 1, 3, 2, (8, 12), 8, 1),
    "small": Setting(8, 2, 5, 2, 3, 1, (100, 120), 64, 2),
    "paper": Setting(20, 500, 500, 1, 30, 10, (100, 300), 0, 1),
}


def epochs_of(row: str, setting: Setting) -> tuple[int, int]:
    """Of a draw and of a final run, at most."""
    factor = setting.cr_factor if row.startswith("CR ") else 1
    return factor * setting.draw_epochs, factor * setting.epochs


def draw(row: str, number: int, setting: Setting) -> dict[str, float]:
    """One point of Table E.1: hidden size and rates uniform, learning rate and l2 uniform in their logarithms."""
    generator = np.random.default_rng([ROWS.index(row), number])

    def log_uniform(low: float, high: float) -> float:
        return float(f"{np.exp(generator.uniform(np.log(low), np.log(high))):.6g}")

    low, high = setting.hidden_size
    drawn = {"hidden_size": int(generator.integers(low, high + 1))}
    drawn |= {name: round(float(generator.uniform(0.0, 0.5)), 4) for name in RATES}
    drawn |= {"lr": log_uniform(1e-4, 1e-2), "weight_decay": log_uniform(1e-7, 1e-5)}
    return drawn | {"clip_norm": round(float(generator.uniform(1.0, 5.0)), 4)}


def train_options(row: str, setting: Setting, drawn: Mapping[str, float]) -> list[str]:
    """fairseq-train's options; data, seed and epochs apart."""
    corpus, _, model = row.partition(" ")
    options = [
        "--task", "text_classification", "--criterion", "classification_cross_entropy", "--arch", "rnn_classifier",
        "--cell", MODELS[model], "--layers", "2", "--embed-dim", str(setting.embed_dim or 300),
        "--optimizer", "adam", "--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.5",
        "--lr-patience", str(setting.lr_patience), "--patience", str(setting.patience),
        "--best-checkpoint-metric", "accuracy", "--maximize-best-checkpoint-metric", "--valid-subset", "valid,test",
        "--batch-size", "16" if corpus == "Amazon" else "64", "--required-batch-size-multiple", "1",
    ]  # fmt: skip
    for name, value in drawn.items():
        options += [f"--{name.replace('_', '-')}", f"{value:g}"]
    return options


def best_epoch(entries: Sequence[LogEntry]) -> dict[str, float]:
    """Accuracies at the epoch of the greatest validation accuracy, the last of equal ones, as fairseq keeps it.

    Raises ValueError if there is no validation among the entries.
    """
    epochs: dict[int, dict[str, float]] = {}
    for entry in entries:
        for split in ("valid", "test"):
            if f"{split}_accuracy" in entry.statistics:
                epochs.setdefault(int(entry.statistics["epoch"]), {})[split] = entry.statistics[f"{split}_accuracy"]
    if not epochs:
        raise ValueError("expected validation statistics in the log, found none")
    return max(sorted(epochs.items()), key=lambda item: (item[1]["valid"], item[0]))[1]


class TextClassification(Recipe):
    """Test accuracy, at the epoch of the greatest validation accuracy."""

    paper = "peng_thesis"
    table = "6.5"
    family = "rational text classification"
    rows = ROWS
    smoke_rows = ("SST RRNN(F)",)
    seeds = {"smoke": 1, "small": 5, "paper": 5}
    licence = "SST, subj, CR, Amazon reviews: for research; GloVe: PDDL; smoke: none needed, the sentences are made up"
    progress_metric = "accuracy"

    def baselines(self, scale: str) -> Mapping[str, str]:
        corpora = ("SST",) if scale == "smoke" else CORPORA
        return {f"{corpus} majority": f"{corpus} LSTM" for corpus in corpora}

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        drawn = [draw(cell.row, number, setting) for number in range(setting.draws)]
        return {**asdict(setting), "train_options": train_options(cell.row, setting, {}), "drawn": drawn}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        corpus = cell.row.partition(" ")[0]
        if cell.scale == "smoke":
            return f"300 made-up sentences, best of {setting.draws} draws"
        vectors = f"learned word vectors of size {setting.embed_dim}" if setting.embed_dim else "GloVe 840B, 300 fixed"
        draw_epochs, epochs = epochs_of(cell.row, setting)
        text = f"{corpus}, {vectors}, best of {setting.draws} draws of {draw_epochs} epochs, at most "
        text += f"{epochs} epochs, hidden size {setting.hidden_size[0]} to {setting.hidden_size[1]}"
        if cell.scale != "paper":
            text += " (published: GloVe 840B, 20 draws, hidden size 100 to 300, 500 epochs)"
        return text

    def estimate(self, cell: Cell) -> Estimate:
        corpus, _, model = cell.row.partition(" ")
        setting = SETTINGS[cell.scale]
        epoch = {"Amazon": 90.0, "SST": 2.5, "subj": 3.7, "CR": 1.1}[corpus] / 60
        epoch *= {"LSTM": 2.0, "RRNN(C)": 1.4, "RRNN(F)": 1.6}.get(model, 1.0)
        draw_epochs, epochs = (60, 60) if cell.scale == "paper" else epochs_of(cell.row, setting)
        searches = setting.draws * draw_epochs / self.seeds[cell.scale]
        epoch *= 10 if cell.scale == "paper" else 1
        return Estimate(0.2 + epoch * (epochs + searches), disk=20.0, download=2077.0 if cell.scale == "paper" else 3.0)

    def prepare(self, run: Run) -> Path:
        setting = SETTINGS[run.cell.scale]
        corpus = CORPORA[run.cell.row.partition(" ")[0]]
        words = ["env", f"PYTHON={sys.executable}", "bash", SCRIPT, corpus, "--min-count", str(setting.min_count)]
        if run.cell.scale == "smoke":
            kind = "made-up"
            words += ["--from", run.prepared("text-classification-made-up", write_made_up), "--unchecked"]
        else:
            source = run.raw_data("text-classification")
            kind = f"learned{setting.min_count}"
            words += ["--from", source] if source else []
            if not setting.embed_dim:
                kind, vectors = "glove", (source or Path()) / "glove.840B.300d.txt"
                if not vectors.is_file():
                    raise ValueError(f"{vectors}: no such file; scale paper needs GloVe's vectors there, by --from DIR")
                words += ["--vectors", vectors]

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell}: preparing the corpus")
            run.command([*words, "--out", folder])

        return run.prepared(f"text-classification-{corpus}-{kind}", make)

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        best = max(read_json(self.search(run, data) / "draws.json")["draws"], key=lambda found: found["accuracy"])
        options = train_options(run.cell.row, setting, best["drawn"])
        return run.fairseq_train(data, options, epochs=epochs_of(run.cell.row, setting)[1])

    def search(self, run: Run, data: Path) -> Path:
        """The folder with draws.json, the draws with their validation accuracies; made once for all seeds of a row."""
        setting = SETTINGS[run.cell.scale]

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell.row}: {setting.draws} draws")
            drawn = [draw(run.cell.row, number, setting) for number in range(setting.draws)]
            trainings = [[
                str(data), "--user-dir", str(PLUGIN), *train_options(run.cell.row, setting, point), "--no-save",
                "--max-epoch", str(epochs_of(run.cell.row, setting)[0]), "--update-epoch-batch-itr", "True",
                "--seed", "1", "--log-format", "json", "--log-interval", "1000", "--num-workers", "0",
                *([] if run.cell.scale == "paper" else ["--cpu"]),
            ] for point in drawn]  # fmt: skip
            logs = run_trainings(trainings, folder, run.threads)
            found = [
                {"drawn": point, "accuracy": best_epoch(entries)["valid"]}
                for point, entries in zip(drawn, logs, strict=True)
            ]
            with atomic_write(folder / "draws.json") as stream:
                json.dump({"draws": found}, stream, indent=1)

        name = f"search-{slug(run.cell.row)}-{run.cell.scale}-{run.configuration_hash[:8]}"
        return run.prepared(name, make)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        log = run.folder / "train.log"
        found = best_epoch(parse_lines(log.read_text(encoding="utf-8").splitlines()))
        draws = [found["accuracy"] for found in read_json(self.search(run, data) / "draws.json")["draws"]]
        return [
            Measurement("validation_accuracy", found["valid"], "%"),
            Measurement("test_accuracy", found["test"], "%"),
            Measurement("search_validation_accuracy", max(draws), "%", "draw", list(enumerate(draws, 1))),
        ]


def write_made_up(folder: Path) -> None:
    """Sentences about food, praised or not: 200 to train, 50 to validate and 50 to test."""
    generator = np.random.default_rng(1)
    words = {1: ("fine", "tasty", "fresh"), 0: ("stale", "bland", "cold")}
    things = ("soup", "bread", "rice", "tea", "cake", "the", "and", "was")
    for split, count in (("train", 200), ("dev", 50), ("test", 50)):
        lines = []
        for _ in range(count):
            label = int(generator.integers(2))
            line = [str(generator.choice(things)) for _ in range(int(generator.integers(3, 15)))]
            for position in generator.integers(len(line), size=2):
                line[position] = str(generator.choice(words[label]))
            lines.append(f"{label} {' '.join(line)}\n")
        with atomic_write(folder / f"stsa.binary.{split}") as stream:
            stream.writelines(lines)


recipe = TextClassification()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
