"""What training costs (Stack Attention, Table 6): examples a second, minutes an epoch, memory, for each model and task.

A few hundred updates of each model at its published size, with no validation and nothing saved; the first 25 do not
count.  An epoch has the published number of examples.  Rows of Table 6 are on the Penn Treebank; ours at scale small
are on nltk's sample of it, with the vocabulary filled up to the published 23,835 entries.  Rows of translation are on
Multi30k, filled up to the 6,156 entries that Table 3's parameters give.  Scales smoke and small measure a CPU, and the
greatest resident memory of the process; scale paper measures a GPU where there is one, and its memory to 0.1 GB.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cfl
import language_modeling
import translation

from seqstruct.data import sentences
from seqstruct.data.cfl.folder import Request, write_folder
from seqstruct.harness.command import main
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

MULTI30K = Path(__file__).resolve().parents[1] / "multi30k" / "multi30k.py"
UPDATES = {"smoke": 50, "small": 200, "paper": 400}
MODELS = ("Tf", "Tf+Sup", "Tf+Nd")
LANGUAGES = ("marked-reversal", "hardest-cfl")  # two states and three: the others cost what these do
TRANSLATION = "translation"
EPOCH = {"ptb": 39_832, "cfl": 10_000, TRANSLATION: 100_000}  # training examples
ENTRIES = {"ptb": 23_835, TRANSLATION: 6_156}
LENGTHS = (40, 80)
SIZE = 160  # of translation models
SPECIAL = 4  # entries of a dictionary that its file does not name


def task_of(row: str) -> str:
    """ptb, cfl or translation."""
    first, _, model = row.rpartition(" ")
    return "cfl" if first in LANGUAGES else first or "ptb"


def fill(path: Path, entries: int) -> None:
    """Add words that no text has to a dictionary file, up to a number of entries, special symbols counted.

    Raises ValueError if there are more already.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    missing = entries - SPECIAL - len(lines)
    if missing < 0:
        raise ValueError(f"{path}: expected at most {entries} entries, found {entries - missing}")
    lines += [f"madeupword{number} 0" for number in range(missing)]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


class Cost(Recipe):
    """Examples a second, minutes an epoch, memory."""

    paper = "stack_attention"
    table = "6"
    stand_in = "6-stand-in"
    family = "cost of stack attention"
    rows = (
        *MODELS, *(f"{language} {model}" for language in LANGUAGES for model in cfl.MODELS),
        *(f"{TRANSLATION} {model}" for model in MODELS),
    )  # fmt: skip
    smoke_rows = ("marked-reversal Tf+Nd",)
    licence = "nltk's sample of the Penn Treebank: non-commercial; Multi30k: for research; strings are sampled"

    def train_options(self, cell: Cell) -> list[str]:
        """fairseq-train's options: of the recipe of the task, at scale paper, with one learning rate."""
        task, model = task_of(cell.row), cell.row.split()[-1]
        if task == "cfl":
            options = cfl.recipe.settings(Cell(cell.row, cell.seed, "paper"))["train_options"]
        elif task == "ptb":
            embed_dim = language_modeling.SETTINGS["paper"].embed_dim
            options = [*language_modeling.train_options(model, embed_dim), "--max-tokens", "320"]
        else:
            max_tokens = str(translation.SETTINGS["paper"].max_tokens)
            options = [*translation.train_options(model, SIZE), "--max-tokens", max_tokens]
        updates = str(UPDATES[cell.scale])
        return [*options, "--lr", "0.0001", "--max-update", updates, "--no-save", "--disable-validation"]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {"train_options": self.train_options(cell), "threads": self.threads[cell.scale]}

    def dataset(self, cell: Cell) -> str:
        task = task_of(cell.row)
        corpus = {
            "ptb": "Penn Treebank, at most 320 tokens a batch",
            "cfl": f"{cell.row.split()[0]}, strings of length {LENGTHS[0]} to {LENGTHS[1]}, batches of 10",
            TRANSLATION: f"Multi30k, size {SIZE}, at most {translation.SETTINGS['paper'].max_tokens} tokens a side",
        }[task]
        if task == "ptb" and cell.scale != "paper":
            corpus = corpus.replace("Penn Treebank", "nltk's sample of the Penn Treebank")
        return f"{corpus}, {UPDATES[cell.scale]} updates, {self.threads[cell.scale] or 'all'} threads"

    def estimate(self, cell: Cell) -> Estimate:
        each = {"cfl": 0.15, "ptb": 0.6, TRANSLATION: 3.0}[task_of(cell.row)] * UPDATES[cell.scale] / 100
        return Estimate(each + 0.3, 3.0, 1.3 if task_of(cell.row) == TRANSLATION else 0.0)

    def prepare(self, run: Run) -> Path:
        task = task_of(run.cell.row)
        if task == "cfl":
            language = run.cell.row.split()[0]
            request = Request(language, train=10 * UPDATES[run.cell.scale], valid=10, test_per_length=1,
                              lengths=LENGTHS, test_lengths=LENGTHS, seed=1)  # fmt: skip
            name = f"cost-{language}-{run.cell.scale}"
            return run.prepared(name, lambda folder: write_folder(request, folder))
        if task == "ptb":
            return self._sentences(run)
        corpus = load_recipe(MULTI30K).prepare(run)

        def copy(folder: Path) -> None:
            for path in (corpus / "bin").iterdir():
                shutil.copy(path, folder)
            for path in folder.glob("dict.*.txt"):
                fill(path, ENTRIES[task])

        return run.prepared(f"cost-translation-{run.cell.scale}", copy)

    def _sentences(self, run: Run) -> Path:
        corpus, source = "ptb", run.source
        if run.cell.scale != "paper":
            nltk = run.raw_data("nltk")
            corpus, source = "treebank-sample", None if nltk is None else nltk / "treebank.zip"
        if source is None:
            raise ValueError(f"row {run.cell.row}: --from DIR is needed, with {corpus} in it; nothing is downloaded")

        def make(folder: Path) -> None:
            sentences.prepare(corpus, source, folder / "corpus")
            for shard in (folder / "corpus" / "bin").iterdir():
                shard.rename(folder / shard.name)
            for path in folder.glob("*/dict.txt"):
                if corpus != "ptb":
                    fill(path, ENTRIES["ptb"])

        return run.prepared(f"cost-{corpus}", make)

    def train(self, run: Run, data: Path) -> Path:
        path = data / "0" if task_of(run.cell.row) == "ptb" else data
        run.fairseq_train(path, self.train_options(run.cell), epochs=1000)
        return run.folder / "train.log"

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        lines = checkpoint.read_text(encoding="utf-8").splitlines()
        inner = [entry.statistics for entry in parse_lines(lines) if entry.tag == "train_inner"][1:]
        if not inner:
            raise ValueError(f"{checkpoint}: expected statistics of 50 updates or more")
        speed = sum(found["bsz"] for found in inner) / sum(1 / found["ups"] for found in inner)
        return [
            Measurement("examples_per_second", speed, "1/s"),
            Measurement("minutes_per_epoch", EPOCH[task_of(run.cell.row)] / speed / 60, "min"),
            memory(run, inner),
        ]


def memory(run: Run, inner: Sequence[Mapping[str, float]]) -> Measurement:
    """Of the GPU where one was used (fairseq logs what was left of it), else of the process, in megabytes (10^6)."""
    if "gb_free" in inner[-1]:
        import torch

        total = torch.cuda.get_device_properties(0).total_memory
        used = total - min(found["gb_free"] for found in inner) * 2**30
        return Measurement("gpu_memory", used / 1e6, "MB")
    return Measurement("resident_memory", run.peak_memory / 1e6, "MB")


recipe = Cost()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
