"""Phrase scores of an RNN encoder-decoder for Moses (Cho et al. 2014, table 1): WMT'14 English to French.

Scale paper takes the phrase table that Moses made, phrase-table or phrase-table.gz in the folder that --from names.
The model (GRUs of size 1000, embeddings of 100, maxout output) trains on the table's phrase pairs, each once however
often it was seen, with the 15,000 most frequent words of each language, by Adadelta in batches of 64; every thousandth
pair validates.  `seqstruct score-phrases` then writes the table anew with one more score, scored.gz in the run's
folder.  What is measured is how well the model knows the pairs; BLEU, the published figure, comes of tuning and
decoding with Moses, which is no part of this project.  Scale smoke takes made-up phrases.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from seqstruct.data.aligned import read_lines
from seqstruct.data.binarise import preprocess_pairs
from seqstruct.data.files import atomic_write
from seqstruct.data.made_up.translation import phrase_table as write_made_up_table
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.harness.translate import validation_perplexity

LANGUAGES = ("en", "fr")
WORDS = 15000
EVERY = {"smoke": 10, "paper": 1000}  # one pair of so many validates
EPOCHS = {"smoke": 2, "paper": 64}
TINY = ("--embed-dim", "16", "--hidden-size", "32", "--maxout-size", "16")


def train_options(scale: str) -> list[str]:
    """fairseq-train's options, data, seed and epochs apart."""
    return [
        "--task", "translation", "--source-lang", LANGUAGES[0], "--target-lang", LANGUAGES[1],
        "--arch", "rnn_encoder_decoder", *(TINY if scale == "smoke" else ()), "--criterion", "structured_cross_entropy",
        "--label-smoothing", "0", "--optimizer", "adadelta", "--adadelta-rho", "0.95", "--adadelta-eps", "1e-6",
        "--lr", "1", "--batch-size", "64",
    ]  # fmt: skip


def phrases(table: Path) -> Iterator[tuple[str, str]]:
    """Source and target of the lines that have both."""
    for line in read_lines(table):
        fields = [field.strip() for field in line.split("|||")]
        if len(fields) >= 3 and fields[0] and fields[1]:
            yield fields[0], fields[1]


class PhraseScores(Recipe):
    """Perplexity of a word of the validation pairs, and how many pairs got a score."""

    paper = "nmt_lectures"
    table = "cho"
    family = "phrase scores"
    rows = ("RNN",)
    licence = "a phrase table of your own; smoke: none needed"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """The one row.  Raises ValueError at scale small, which there is not."""
        if scale == "small":
            raise ValueError("table cho has the scales smoke and paper: no phrase table is free")
        return super().cells(scale, seeds)

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {"train_options": train_options(cell.scale), "words": WORDS, "every": EVERY[cell.scale],
                "epochs": EPOCHS[cell.scale]}  # fmt: skip

    def dataset(self, cell: Cell) -> str:
        return "made-up phrases" if cell.scale == "smoke" else "the phrase table that --from names"

    def estimate(self, cell: Cell) -> Estimate:
        """Minutes of one GPU at scale paper."""
        minutes, disk = {"smoke": (0.4, 2.0), "paper": (60.0 * 24 * 3, 20000.0)}[cell.scale]
        return Estimate(minutes, disk)

    def prepare(self, run: Run) -> Path:
        every = EVERY[run.cell.scale]

        def make(folder: Path) -> None:
            text = folder / "text"
            with ExitStack() as stack:
                streams = {
                    (split, side): stack.enter_context(atomic_write(text / f"{split}.{language}"))
                    for split in ("train", "valid", "test") for side, language in enumerate(LANGUAGES)
                }  # fmt: skip
                for number, pair in enumerate(phrases(self.phrase_table(run)), 1):
                    # fairseq-preprocess asks for a test set: the validation pairs once more
                    for split in ("valid", "test") if number % every == 0 else ("train",):
                        for side, phrase in enumerate(pair):
                            streams[split, side].write(f"{phrase}\n")
            limits = ("--nwordssrc", str(WORDS), "--nwordstgt", str(WORDS))
            preprocess_pairs(text, folder / "bin", LANGUAGES, joined=False, arguments=limits)

        return run.prepared(f"phrases-{run.cell.scale}", make)

    def phrase_table(self, run: Run) -> Path:
        """The table, made up at the smoke scale.  Raises ValueError if there is none."""
        if run.cell.scale == "smoke":
            return run.prepared("phrase-table-made-up", write_made_up_table) / "phrase-table"
        for name in ("phrase-table", "phrase-table.gz"):
            if run.source is not None and (run.source / name).is_file():
                return run.source / name
        raise ValueError("--from DIR is a folder with the phrase-table or phrase-table.gz of Moses")

    def train(self, run: Run, data: Path) -> Path:
        return run.fairseq_train(data / "bin", train_options(run.cell.scale), epochs=EPOCHS[run.cell.scale])

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        command = [sys.executable, "-m", "seqstruct", "score-phrases", self.phrase_table(run)]
        command += ["--checkpoint", checkpoint, "--data", data / "bin", "--out", run.folder / "scored.gz"]
        command += ["--score", "probability", "--keep"]
        log = run.folder / "score.log"
        log.unlink(missing_ok=True)
        run.command(command + (["--cpu"] if run.cell.scale != "paper" else []), log.name)
        found = re.findall(r"lines: (\d+) scored", log.read_text(encoding="utf-8"))
        if not found:
            raise ValueError(f"{log}: expected the number of scored lines, found none")
        return [
            Measurement("validation_perplexity", validation_perplexity(run), "perplexity"),
            Measurement("phrase_pairs_scored", int(found[-1]), "phrase pairs"),
            Measurement("parameters", run.parameters, "parameters"),
        ]


recipe = PhraseScores()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
