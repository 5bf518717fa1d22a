"""Language modeling (Peng 2022, Table 6.3): LSTM and four rational recurrences within a budget of parameters.

The text is one stream, read in segments of 35 tokens with the state carried on; embeddings are tied.  Scale paper is
the Penn Treebank in the published setting, as far as it is given; what chapter 6 leaves to Lei et al. (2017b) is: 32
rows, SGD of rate 1.0 (0.5 for C and F) that shrinks by 0.98 an epoch from the 175th of 300 on, clipping at 5.  These
are taken to be of a loss summed over the 35 steps, and are thus 35 times as large (clipping as small) for fairseq's
loss, a mean over tokens.  Scale small is a part of the Brown corpus, a tenth of the parameters, and Adam.

The row LSTM 2 layers 10M is not in the source: it is what the rows of 10M can be compared with at scale small.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.data.made_up.text import ptb as write_made_up
from seqstruct.harness.baselines import ORDERS
from seqstruct.harness.command import main
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.process import fairseq
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run

SCRIPTS = Path(__file__).resolve().parents[2] / "data-prep"
CELLS = {"LSTM": "LSTM", "RRNN(B)": "B", "RRNN(B) max-plus": "B_max_plus", "RRNN(C)": "C", "RRNN(F)": "F"}
SIZES = {"2 layers 10M": (2, 10_000_000), "3 layers 24M": (3, 24_000_000)}
ROWS = (
    "LSTM 2 layers 24M",
    "LSTM 3 layers 24M",
    *(f"{model} {size}" for size in SIZES for model in CELLS if (model, size) != ("LSTM", "3 layers 24M")),
)
STEPS = 35  # of a segment


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    corpus: ptb or brown.  vocabulary: types; train_lines: of training, 0: all.  budget: what the parameters of a row
    are divided by.  rows: read side by side.  dropout: for 10M and 24M.  optimizer: options of fairseq-train.
    """

    corpus: str
    vocabulary: int
    train_lines: int
    budget: int
    rows: int
    epochs: int
    dropout: tuple[float, float]
    optimizer: tuple[str, ...]


def _adam(learning_rate: float, updates: int) -> tuple[str, ...]:
    """Few epochs: the rate falls linearly to 0."""
    return (
        "--optimizer", "adam", "--lr", f"{learning_rate:g}", "--lr-scheduler", "polynomial_decay",
        "--warmup-updates", str(updates // 20),
        "--total-num-update", str(updates), "--clip-norm", "1",
    )  # fmt: skip


_SGD = (
    "--optimizer", "sgd", "--weight-decay", f"{1e-5 / STEPS:g}", "--clip-norm", f"{5 / STEPS:g}",
    "--lr-scheduler", "fixed", "--force-anneal", "175", "--lr-shrink", "0.98",
)  # fmt: skip
SETTINGS = {
    "smoke": Setting("ptb", 0, 0, 1000, 4, 8, (0.0, 0.0), _adam(0.03, 130)),
    "small": Setting("brown", 5000, 8000, 10, 20, 5, (0.2, 0.3), _adam(0.004, 1275)),
    "paper": Setting("ptb", 0, 0, 1, 32, 300, (0.6, 0.7), _SGD),
}


def train_options(row: str, setting: Setting) -> list[str]:
    """fairseq-train's options; data, seed and epochs apart."""
    model, layers, _, size = row.rsplit(" ", 3)
    budget = int(size.rstrip("M")) * 1_000_000
    options = [
        "--task", "stream_language_modeling", "--tokens-per-sample", str(STEPS), "--batch-size", str(setting.rows),
        "--arch", "recurrent_lm", "--cell", CELLS[model], "--decoder-layers", layers,
        "--parameter-budget", str(budget // setting.budget), "--dropout", str(setting.dropout[size != "10M"]),
        "--variational-dropout", "0.2" if setting.corpus == "ptb" and setting.budget == 1 else "0.1",
        *setting.optimizer,
    ]  # fmt: skip
    if "sgd" in setting.optimizer:
        options += ["--lr", f"{(0.5 if CELLS[model] in ('C', 'F') else 1.0) * STEPS:g}"]
    return options


class RationalLanguageModels(Recipe):
    """Perplexity of a word, end of sentence counted, of text read in one piece."""

    paper = "peng_thesis"
    table = "6.3"
    stand_in = "6.3-stand-in"
    family = "rational language models"
    rows = ROWS
    smoke_rows = ("RRNN(F) 2 layers 10M",)
    seeds = {"smoke": 1, "small": 1, "paper": 1}
    licence = "Penn Treebank: LDC; Brown: non-commercial; made-up sentences at the smoke scale: none needed"
    progress_metric = "ppl"

    def baselines(self, scale: str) -> Mapping[str, str]:
        return dict.fromkeys(ORDERS, "LSTM 2 layers 10M")

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        return {**asdict(setting), "train_options": train_options(cell.row, setting)}

    def dataset(self, cell: Cell) -> str:
        if cell.scale == "smoke":
            return "200 made-up sentences"
        if cell.scale == "paper":
            return "Penn Treebank, text of Mikolov et al. (2010), at most 300 epochs"
        s = SETTINGS[cell.scale]
        return (
            f"Brown corpus, {s.train_lines} training sentences, {s.vocabulary} types, a {s.budget}th of the row's "
            f"parameters, {s.epochs} epochs of Adam (published: Penn Treebank, 42068 sentences, 10000 types)"
        )

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.4, "small": 2.5, "paper": 240.0}[cell.scale]
        slower = 2.0 if cell.row.endswith("24M") else 1.0
        return Estimate(minutes * slower, disk=50.0 if cell.scale == "small" else 300.0, download=3.3)

    def prepare(self, run: Run) -> Path:
        setting = SETTINGS[run.cell.scale]
        name = f"{setting.corpus}-{run.cell.scale}-{setting.vocabulary}-{setting.train_lines}"
        words = ["env", f"PYTHON={sys.executable}", "bash", SCRIPTS / f"{setting.corpus}.sh"]
        if run.cell.scale == "smoke":
            words += ["--from", run.prepared("ptb-made-up", write_made_up), "--unchecked"]
        else:
            source = run.raw_data("nltk" if setting.corpus == "brown" else "ptb")
            words += ["--from", source] if source else []
        words += ["--vocabulary", str(setting.vocabulary), "--train-lines", str(setting.train_lines)]

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell}: preparing the corpus")
            run.command([*words, "--out", folder])

        return run.prepared(name, make)

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        return run.fairseq_train(data / "bin", train_options(run.cell.row, setting), epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        found = perplexities(run, data / "bin", checkpoint)
        return [
            Measurement("validation_perplexity", found["valid"], "perplexity"),
            Measurement("test_perplexity", found["test"], "perplexity"),
        ]


def perplexities(run: Run, binarised: Path, checkpoint: Path) -> dict[str, float]:
    """Of validation and test set, each read as one row, by fairseq-validate; long segments only save time."""
    log = run.folder / "validate.log"
    log.unlink(missing_ok=True)
    command = [*fairseq("validate"), binarised, "--user-dir", PLUGIN, "--task", "stream_language_modeling"]
    command += ["--path", checkpoint, "--valid-subset", "valid,test", "--batch-size", "1", "--log-format", "json"]
    command += ["--model-overrides", "{'tokens_per_sample': 500}", "--num-workers", "0"]
    run.command(command + (["--cpu"] if run.cell.scale != "paper" else []), log.name)
    found = {}
    for entry in parse_lines(log.read_text(encoding="utf-8").splitlines()):
        if f"{entry.tag}_loss" in entry.statistics:
            found[entry.tag] = 2 ** entry.statistics[f"{entry.tag}_loss"]
    missing = [split for split in ("valid", "test") if split not in found]
    if missing:
        raise ValueError(f"{log}: no statistics of the {' and the '.join(missing)} set")
    return found


recipe = RationalLanguageModels()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
