"""Text classification (Peng 2022, Table 6.5): LSTM and four rational recurrences on Amazon, SST, subj and CR.

For each corpus settings are drawn at random from Table E.1, the same for all models.  A row trains every draw, on as
many epochs as it takes to be clearly better than the most frequent label, up to a limit, and the best one again with
each other bias that forget gates may start at, which the thesis does not say.  What has the greatest validation
accuracy is trained anew with each seed; of equal ones it is that of the least validation loss, and those equal in both
are refused, as is a row whose draws all stay at chance.  The test accuracy is that of the epoch of the
greatest validation accuracy; a model that predicts one label for all of validation is refused.  Scale paper is
the published setting, with GloVe vectors of 300 dimensions, unit length and fixed: --from then names a folder with
both the raw corpora and glove.840B.300d.txt.  Scale small learns its word vectors, has hidden sizes at the low end of
the published range, fewer and shorter draws and a few epochs, so that 6 draws and 5 seeds of a row take some minutes.

subj and CR have no official splits: 80, 10 and 10 percent are drawn once, for all models and seeds.  l2 regularisation
is fairseq's weight decay in Adam, which is decoupled from the gradient.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqstruct.data.files import atomic_write
from seqstruct.data.made_up.sentences import sst as write_made_up
from seqstruct.data.text_classification.folder import read_meta, read_split
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
FORGET_BIASES = (1.0, 0.0, 2.0)  # the draws take the first
RATES = ("vertical_dropout", "recurrent_dropout", "embedding_dropout")


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    draws: settings drawn for a corpus.  draw_epochs: of a draw, and of one that is at chance then, twice as many until
    draw_limit.  epochs: at most, of the final runs, or those of the draw where they are more.  On CR, the smallest
    corpus, all three are cr_factor times as many.  patience, lr_patience: epochs without a better validation accuracy
    after which training ends, and the learning rate is halved; small ones would end a slow start.  hidden_size: ends of
    the draw.  embed_dim: of learned word vectors, 0: GloVe.  min_count: occurrences in training that a word needs,
    where vectors are learned.
    """

    draws: int
    draw_epochs: int
    draw_limit: int
    epochs: int
    cr_factor: int
    patience: int
    lr_patience: int
    hidden_size: tuple[int, int]
    embed_dim: int
    min_count: int


SETTINGS = {
    "smoke": Setting(2, 2, 16, 3, 1, 16, 4, (8, 12), 8, 1),
    "small": Setting(6, 3, 12, 5, 2, 12, 3, (100, 120), 64, 2),
    "paper": Setting(20, 500, 500, 500, 1, 30, 10, (100, 300), 0, 1),
}


def epochs_of(row: str, setting: Setting, name: str) -> int:
    """The setting's draw_epochs, draw_limit or epochs, by name, for the row's corpus."""
    return (setting.cr_factor if row.startswith("CR ") else 1) * getattr(setting, name)


def draw(corpus: str, number: int, setting: Setting) -> dict[str, float]:
    """One point of Table E.1: hidden size and rates uniform, learning rate and l2 uniform in their logarithms.

    Its forget gates start at the first of FORGET_BIASES.
    """
    generator = np.random.default_rng([list(CORPORA).index(corpus), number])

    def log_uniform(low: float, high: float) -> float:
        return float(f"{np.exp(generator.uniform(np.log(low), np.log(high))):.6g}")

    low, high = setting.hidden_size
    drawn = {"hidden_size": int(generator.integers(low, high + 1))}
    drawn |= {name: round(float(generator.uniform(0.0, 0.5)), 4) for name in RATES}
    drawn |= {"lr": log_uniform(1e-4, 1e-2), "weight_decay": log_uniform(1e-7, 1e-5)}
    return drawn | {"clip_norm": round(float(generator.uniform(1.0, 5.0)), 4), "forget_bias": FORGET_BIASES[0]}


def draws_of(cell: Cell) -> list[dict[str, float]]:
    """The draws of the cell's corpus and scale."""
    setting = SETTINGS[cell.scale]
    return [draw(cell.row.partition(" ")[0], number, setting) for number in range(setting.draws)]


def train_options(row: str, setting: Setting, drawn: Mapping[str, float]) -> list[str]:
    """fairseq-train's options; data, seed and epochs apart."""
    corpus, _, model = row.partition(" ")
    options = [
        "--task", "text_classification", "--criterion", "classification_cross_entropy", "--arch", "rnn_classifier",
        "--cell", MODELS[model], "--layers", "2", "--embed-dim", str(setting.embed_dim or 300),
        "--optimizer", "adam", "--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.5",
        "--lr-patience", str(setting.lr_patience), "--patience", str(setting.patience),
        "--best-checkpoint-metric", "accuracy", "--maximize-best-checkpoint-metric",
        "--batch-size", "16" if corpus == "Amazon" else "64", "--required-batch-size-multiple", "1",
    ]  # fmt: skip
    for name, value in drawn.items():
        options += [f"--{name.replace('_', '-')}", f"{value:g}"]
    return options


def best_epoch(entries: Sequence[LogEntry]) -> dict[str, float]:
    """Statistics of the epoch of the greatest validation accuracy, the last of equal ones, as fairseq keeps it.

    Raises ValueError if there is no validation among the entries.
    """
    epochs: dict[int, dict[str, float]] = {}
    for entry in entries:
        if "valid_accuracy" in entry.statistics or "test_accuracy" in entry.statistics:
            epochs.setdefault(int(entry.statistics["epoch"]), {}).update(entry.statistics)
    if not epochs:
        raise ValueError("expected validation statistics in the log, found none")
    return max(epochs.values(), key=lambda found: (found["valid_accuracy"], found["epoch"]))


def better_than_chance(labels: Sequence[int]) -> float:
    """The accuracy in percent that three standard errors part from always giving the most frequent of the labels."""
    share = max(Counter(labels).values()) / len(labels)
    return 100 * (share + 3 * (share * (1 - share) / len(labels)) ** 0.5)


def order(found: Mapping[str, Any]) -> tuple[float, float]:
    """A key by which the better of two draws comes first."""
    return -found["accuracy"], found["loss"]


def choose(row: str, draws: Sequence[Mapping[str, Any]], least: float) -> Mapping[str, Any]:
    """The draw of the greatest accuracy, of equal ones that of the least loss.

    Raises ValueError if no draw has an accuracy above `least`, or two draws are equal in both.
    """
    best, *rest = sorted(draws, key=order)
    if best["accuracy"] <= least:
        raise ValueError(
            f"{row}: none of {len(draws)} draws differs from chance: the best has a validation accuracy of "
            f"{best['accuracy']:g} % after {best['epochs']} epochs, expected more than {least:.4g} %"
        )
    if rest and order(rest[0]) == order(best):
        raise ValueError(
            f"{row}: two draws are best, with a validation accuracy of {best['accuracy']:g} % and a loss of "
            f"{best['loss']:g} nats: {dict(best['drawn'])} and {dict(rest[0]['drawn'])}"
        )
    return best


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
        options = train_options(cell.row, setting, {})
        return {**asdict(setting), "train_options": options, "drawn": draws_of(cell), "forget_biases": FORGET_BIASES}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        corpus = cell.row.partition(" ")[0]
        if cell.scale == "smoke":
            return f"300 made-up sentences, best of {setting.draws} draws and {len(FORGET_BIASES)} forget biases"
        vectors = f"learned word vectors of size {setting.embed_dim}" if setting.embed_dim else "GloVe 840B, 300 fixed"
        draw_epochs, limit, epochs = (epochs_of(cell.row, setting, n) for n in ("draw_epochs", "draw_limit", "epochs"))
        text = f"{corpus}, {vectors}, best of {setting.draws} draws of {draw_epochs} epochs"
        text += f" (at chance: up to {limit})" if limit > draw_epochs else ""
        text += f" and of {len(FORGET_BIASES)} biases of forget gates"
        text += f", at most {epochs} epochs, hidden size {setting.hidden_size[0]} to {setting.hidden_size[1]}"
        if cell.scale != "paper":
            text += " (published: GloVe 840B, 20 draws, hidden size 100 to 300, 500 epochs)"
        return text

    def estimate(self, cell: Cell) -> Estimate:
        corpus, _, model = cell.row.partition(" ")
        setting = SETTINGS[cell.scale]
        epoch = {"Amazon": 90.0, "SST": 2.5, "subj": 3.7, "CR": 1.1}[corpus] / 60
        epoch *= {"LSTM": 2.0, "RRNN(C)": 1.4, "RRNN(F)": 1.6}.get(model, 1.0)
        draw_epochs, epochs = (
            60 if cell.scale == "paper" else epochs_of(cell.row, setting, name) for name in ("draw_epochs", "epochs")
        )
        searches = (setting.draws + len(FORGET_BIASES) - 1) * draw_epochs / self.seeds[cell.scale]
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
        found = read_json(self.search(run, data) / "draws.json")
        best = choose(run.cell.row, found["draws"], found["better_than_chance"])
        options = [*train_options(run.cell.row, setting, best["drawn"]), "--valid-subset", "valid,test"]
        return run.fairseq_train(data, options, epochs=max(epochs_of(run.cell.row, setting, "epochs"), best["epochs"]))

    def search(self, run: Run, data: Path) -> Path:
        """The folder with draws.json, the draws with their validation accuracies; made once for all seeds of a row."""
        row, setting = run.cell.row, SETTINGS[run.cell.scale]
        least = better_than_chance(read_split(data, "valid", read_meta(data))[1])

        def train(points: Sequence[Mapping[str, float]], epochs: int, folder: Path) -> list[dict[str, Any]]:
            run.progress.say(f"{row}: {len(points)} draws, {epochs} epochs")
            trainings = [[
                str(data), "--user-dir", str(PLUGIN), *train_options(row, setting, point), "--no-save",
                "--max-epoch", str(epochs), "--update-epoch-batch-itr", "True",
                "--seed", "1", "--log-format", "json", "--log-interval", "1000", "--num-workers", "0",
                *([] if run.cell.scale == "paper" else ["--cpu"]),
            ] for point in points]  # fmt: skip
            best = map(best_epoch, run_trainings(trainings, folder, run.threads))
            return [
                {"drawn": point, "epochs": epochs, "accuracy": found["valid_accuracy"], "loss": found["valid_loss"]}
                for point, found in zip(points, best, strict=True)
            ]

        def make(folder: Path) -> None:
            epochs, limit = epochs_of(row, setting, "draw_epochs"), epochs_of(row, setting, "draw_limit")
            draws = train(draws_of(run.cell), epochs, folder)
            while epochs < limit and (late := [i for i, found in enumerate(draws) if found["accuracy"] <= least]):
                epochs = min(2 * epochs, limit)
                again = train([draws[i]["drawn"] for i in late], epochs, folder)
                for i, found in zip(late, again, strict=True):
                    draws[i] = found
            best = min(draws, key=order)
            if best["accuracy"] > least:
                points = [best["drawn"] | {"forget_bias": bias} for bias in FORGET_BIASES[1:]]
                draws += train(points, best["epochs"], folder)
            with atomic_write(folder / "draws.json") as stream:
                json.dump({"better_than_chance": least, "draws": draws}, stream, indent=1)

        return run.prepared(f"search-{slug(row)}-{run.cell.scale}-{run.configuration_hash[:8]}", make)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        log = run.folder / "train.log"
        found = best_epoch(parse_lines(log.read_text(encoding="utf-8").splitlines()))
        if found["valid_most_predicted"] >= 100:
            raise ValueError(
                f"{run.cell}: the trained model predicts one label for every sentence of validation, so it is no "
                f"result; see {log}"
            )
        draws = [found["accuracy"] for found in read_json(self.search(run, data) / "draws.json")["draws"]]
        return [
            Measurement("validation_accuracy", found["valid_accuracy"], "%"),
            Measurement("test_accuracy", found["test_accuracy"], "%"),
            Measurement("search_validation_accuracy", max(draws), "%", "draw", list(enumerate(draws, 1))),
        ]


recipe = TextClassification()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
