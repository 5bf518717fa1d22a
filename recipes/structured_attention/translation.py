"""Translation with segmentation attention (Structured Attention Networks, section 4.2, appendix A.3, Table 3).

Scale paper is the published setting, Japanese to English, from the licensed corpus (data-prep/aspec.sh says how to get
it).  Scale small takes Multi30k, German to English, 2 + 2 layers of size 128 and Adam; scale smoke a few hundred
made-up sentence pairs, which prove nothing.

Rows are named after the source's units and the attention; all score by the same bilinear map.  "no gamma", "unary l2"
and "from sigmoid" are footnote 6's: marginals as they are; they and a penalty on the bilinear map; they, from a trained
sigmoid model.
A run leaves attention.png, as Figure 4: the weights of one test sentence and its reference.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from seqstruct.data.aligned import read_lines
from seqstruct.data.made_up.translation import multi30k
from seqstruct.harness import plot
from seqstruct.harness.baselines import measure
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.harness.translate import generate, validation_perplexity
from seqstruct.scoring.hypotheses import read_generate, to_text
from seqstruct.scoring.translation import score

ROOT = Path(__file__).resolve().parents[2]
ATTENTIONS = {
    "simple": "luong",
    "sigmoid": "segmentation(pairwise=False, normalize=False)",
    "structured": "segmentation",
    "no gamma": "segmentation(normalize=False)",
    "unary l2": "segmentation(normalize=False, score_l2=0.0001)",
    "from sigmoid": "segmentation(normalize=False)",
}
UNITS = ("characters", "words")
DECODE = ("--gen-subset", "test", "--beam", "5", "--lenpen", "1", "--max-len-a", "1.5", "--max-len-b", "10")
LONGEST_SHOWN = 60  # source units in the sentence of the picture


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    max_source, max_target: units in a sentence at most, by the source's units.  threshold: occurrences in training that
    a token needs.  epochs, updates: of training, by the source's units; updates where the learning rate falls to 0 at
    the end.  options: of fairseq-train, for the architecture and the optimizer.
    """

    max_source: Mapping[str, int]
    max_target: int
    threshold: int
    epochs: Mapping[str, int]
    updates: Mapping[str, int] | None
    options: tuple[str, ...]


def _adam(size: int, learning_rate: float, batch: int, warmup: int) -> tuple[str, ...]:
    """A small model; the learning rate falls linearly to 0, so that few epochs suffice."""
    return (
        "--arch", "rnn_structured_attention", "--embed-dim", str(size), "--hidden-size", str(size),
        "--dropout", "0.2", "--optimizer", "adam", "--lr", f"{learning_rate:g}", "--clip-norm", "1",
        "--lr-scheduler", "polynomial_decay", "--warmup-updates", str(warmup), "--batch-size", str(batch),
    )  # fmt: skip


_PUBLISHED = (
    "--arch", "rnn_structured_attention", "--optimizer", "sgd", "--lr", "1.0", "--clip-norm", "1", "--sentence-avg",
    "--lr-scheduler", "decay_from_plateau", "--lr-shrink", "0.5", "--batch-size", "128",
)  # fmt: skip
SETTINGS = {
    "smoke": Setting({"characters": 100, "words": 50}, 50, 1, {"characters": 6, "words": 6},
                     {"characters": 120, "words": 120}, _adam(32, 0.01, 20, 10)),
    "small": Setting({"characters": 60, "words": 250}, 250, 5, {"characters": 10, "words": 10},
                     {"characters": 1740, "words": 4540}, _adam(128, 0.004, 64, 100)),
    "paper": Setting({"characters": 50, "words": 50}, 50, 10, {"characters": 30, "words": 30}, None,
                     _PUBLISHED),
}


def train_options(cell: Cell) -> list[str]:
    """fairseq-train's options, data, seed and epochs apart."""
    source, target = languages(cell)
    units, attention = cell.row.split(", ")
    setting = SETTINGS[cell.scale]
    schedule = ["--total-num-update", str(setting.updates[units])] if setting.updates else []
    return [
        "--task", "translation", "--source-lang", source, "--target-lang", target, *setting.options, *schedule,
        "--cross-attention", ATTENTIONS[attention], "--criterion", "structured_cross_entropy",
        "--label-smoothing", "0" if cell.scale == "paper" else "0.1",
    ]  # fmt: skip


def languages(cell: Cell) -> tuple[str, str]:
    """Source and target."""
    return ("ja", "en") if cell.scale == "paper" else ("de", "en")


class Translation(Recipe):
    """BLEU on the test set, perplexity on the validation set."""

    paper = "structured_attention"
    table = "3"
    stand_in = "3-stand-in"
    family = "recurrent translation"
    rows = (
        *(f"{units}, {attention}" for units in UNITS for attention in ("simple", "sigmoid", "structured")),
        *(f"words, {attention}" for attention in ("no gamma", "unary l2", "from sigmoid")),
    )
    smoke_rows = ("words, structured",)
    seeds = {"smoke": 1, "small": 1, "paper": 1}
    licence = (
        "paper: ASPEC, by application at https://jipsti.jst.go.jp/aspec/; small: Multi30k, for research; "
        "smoke: none needed"
    )

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {"copy": "words, simple"}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        return measure("copy", data, languages=languages(run.cell))

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = {**asdict(SETTINGS[cell.scale]), "train_options": train_options(cell), "decode_options": DECODE}
        return {**setting, "from": train_options(self._start(cell)) if self._start(cell) else None}

    def dataset(self, cell: Cell) -> str:
        setting, units = SETTINGS[cell.scale], cell.row.split(", ")[0]
        text = (
            f"{units} to words, at most {setting.max_source[units]} {units} a source, tokens seen {setting.threshold} "
            f"times or more, {setting.epochs[units]} epochs"
        )
        name = {"smoke": "400 made-up sentence pairs", "small": "Multi30k de-en task 1, test_2016_flickr",
                "paper": "ASPEC ja-en, 500000 pairs"}[cell.scale]
        return f"{name}, {text}"

    def estimate(self, cell: Cell) -> Estimate:
        units, attention = cell.row.split(", ")
        minutes = {"smoke": 0.4, "small": 12.0, "paper": 1500.0}[cell.scale]
        slower = 1.0 if attention in ("simple", "sigmoid") else 3.0 if units == "characters" else 1.4
        twice = 2.0 if attention == "from sigmoid" else 1.0
        return Estimate(minutes * slower * twice, {"smoke": 2.0, "small": 60.0, "paper": 900.0}[cell.scale],
                        1.3 if cell.scale == "small" else 0.0)

    def prepare(self, run: Run) -> Path:
        cell, units = run.cell, run.cell.row.split(", ")[0]
        setting = SETTINGS[cell.scale]
        name = f"{'-'.join(languages(cell))}-{units}-{cell.scale}-{setting.max_source[units]}-{setting.threshold}"

        def make(folder: Path) -> None:
            run.progress.say(f"{cell}: preparing the corpus")
            run.command(self._preparation(run, units, folder))

        return run.prepared(name, make)

    def _preparation(self, run: Run, units: str, folder: Path) -> list[str | Path]:
        """The command that prepares the corpus."""
        setting = SETTINGS[run.cell.scale]
        if run.cell.scale == "paper":
            source = run.raw_data("aspec")
            if source is None:
                raise ValueError("ASPEC comes by application alone: give its folder by --from (see data-prep/aspec.sh)")
            words = ["env", f"PYTHON={sys.executable}", "bash", ROOT / "data-prep" / "aspec.sh", "--from", source]
            return [*words, "--units", "characters" if units == "characters" else "kytea", "--out", folder]
        prefixes = self._raw_text(run)
        words = [sys.executable, "-m", "seqstruct", "prepare", "word-pairs"]
        for split, name in (("train", "train"), ("valid", "val"), ("test", "test_2016_flickr")):
            words += [f"--{split}", prefixes / name]
        words += ["--src", "de", "--trg", "en", "--source-units", "characters" if units == "characters" else "moses"]
        words += ["--max-source", str(setting.max_source[units]), "--max-target", str(setting.max_target)]
        return [*words, "--threshold", str(setting.threshold), "--out", folder]

    def _raw_text(self, run: Run) -> Path:
        """The folder with the text of Multi30k, or of made-up pairs."""
        if run.cell.scale == "smoke":
            return run.prepared("multi30k-made-up", multi30k)
        found = run.raw_data("multi30k")
        if found is None:
            raise ValueError("no text of Multi30k: give the folder of its raw files by --from")
        return found

    def _start(self, cell: Cell) -> Cell | None:
        """The cell whose model this one starts from, if there is one."""
        return replace(cell, row="words, sigmoid") if cell.row.endswith("from sigmoid") else None

    def train(self, run: Run, data: Path) -> Path:
        options = train_options(run.cell)
        start = self._start(run.cell)
        if start is not None:
            other = Run(self, start, run.root.parent, progress=run.progress, source=run.source)
            other.folder.mkdir(parents=True, exist_ok=True)
            options += ["--finetune-from-model", str(self.train(other, data))]
        epochs = SETTINGS[run.cell.scale].epochs[run.cell.row.split(", ")[0]]
        return run.fairseq_train(data / "bin", options, epochs=epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        target = languages(run.cell)[1]
        references = list(read_lines(data / "raw" / f"test.{target}"))
        decoded = generate(run, data / "bin", checkpoint, languages(run.cell), DECODE)
        hypotheses = to_text(read_generate(read_lines(decoded), str(decoded), len(references)), "none", target)
        bleu, chrf = score(hypotheses, [references])
        run.progress.say(f"{run.cell}: {bleu.signature}")
        draw_attention(run, data, checkpoint)
        return [
            Measurement("validation_perplexity", validation_perplexity(run), "perplexity"),
            Measurement("test_bleu", bleu.value, "BLEU"),
            Measurement("test_chrf", chrf.value, "chrF2"),
        ]


def draw_attention(run: Run, data: Path, checkpoint: Path) -> None:
    """Write attention.png: source weights of the first test sentence that is known and short, if there is one."""
    known = []
    for language in languages(run.cell):
        lines = read_lines(data / "bin" / f"dict.{language}.txt")
        known.append({line.rsplit(" ", 1)[0] for line in lines})
    texts = [read_lines(data / "text" / f"test.{language}") for language in languages(run.cell)]
    for pair in zip(*texts, strict=True):
        words = [line.split() for line in pair]
        if len(words[0]) <= LONGEST_SHOWN and all(set(w) <= k for w, k in zip(words, known, strict=True)):
            views = plot.layer_views(checkpoint, pair[0], target=pair[1], data=data / "bin")
            plot.save(plot.attention(views, run.cell.row), run.folder / "attention.png")
            return


recipe = Translation()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
