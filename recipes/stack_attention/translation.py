"""German-English translation (Stack Attention, section 8 and appendix G): three sizes of three models.

Trained on 100,000 pairs of Europarl v7, validated on newstest2016 and tested on newstest2017, which
data-prep/europarl.sh downloads (or --from names).  Scale paper is the published setting: for each of 5 runs a learning
rate is drawn (--draws lists them), a validation every 50,000 pairs, the best of 5 by validation.  Scale small is not
offered here: Multi30k (recipes/multi30k) is the corpus that a laptop can train on.  Scale smoke has a few hundred
made-up pairs, which prove nothing.

Deviations.  Decoding: the source divides log-probabilities by length (EOS counted) before it selects the next beam, so
that a hypothesis that has ended keeps its place there against longer ones; fairseq takes ended hypotheses out of the
beam, divides theirs alone (--lenpen 1, EOS counted) and goes on until it has as many of them as the beam is wide.  All
that is unfinished at one step has one length, so there division changes no choice.  A shard of the training set is an
epoch of fairseq's, as in language_modeling.py.  Test BLEU is sacreBLEU on the raw references.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.data.aligned import read_lines
from seqstruct.data.europarl import LANGUAGES
from seqstruct.data.made_up.translation import europarl as write_made_up
from seqstruct.data.shards import data_path
from seqstruct.harness.baselines import measure
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.harness.search import SearchSpace, draw
from seqstruct.harness.translate import generate, validation_perplexity
from seqstruct.scoring.hypotheses import read_generate, to_text
from seqstruct.scoring.translation import score

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "data-prep" / "europarl.sh"
SIZES = (160, 240, 360)
DECODE = ("--gen-subset", "test", "--beam", "4", "--lenpen", "1", "--max-len-a", "1.5", "--max-len-b", "10")


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    pairs: drawn for training.  vocabulary, min_frequency: of subwords.  max_tokens: of either side of a batch.
    epochs: shards at most.  space: what is drawn for each run.
    """

    pairs: int
    vocabulary: int
    min_frequency: int
    max_tokens: int
    epochs: int
    space: SearchSpace


# 100 passes of two shards; the ends of the learning rate are those of the released code
SETTINGS = {
    "smoke": Setting(400, 150, 5, 500, 4, SearchSpace((0.003, 0.003))),
    "paper": Setting(100_000, 32_000, 50, 2048, 200, SearchSpace((1e-5, 1e-3))),
}


def plan(model: str, embed_dim: int) -> str:
    """The attention of the five layers of either side; vectors of the superposition stack are as wide as the model."""
    stacks = {
        "Tf+Sup": f"superposition_stack(size={embed_dim})",
        "Tf+Nd": "nondeterministic_stack(states=3, symbols=3, size=5)",
    }
    return f"softmax*2 + {stacks[model]} + softmax*2" if model in stacks else "softmax"


def train_options(model: str, embed_dim: int) -> list[str]:
    """fairseq-train's options; data, seed, epochs, batch size and what is drawn apart."""
    return [
        "--task", "translation", "--source-lang", "de", "--target-lang", "en",
        "--arch", "structured_transformer_stack_europarl", "--decoder-embed-dim", str(embed_dim),
        "--encoder-self-attention", plan(model, embed_dim), "--decoder-self-attention", plan(model, embed_dim),
        "--optimizer", "adam", "--clip-norm", "5", "--criterion", "label_smoothed_cross_entropy",
        "--label-smoothing", "0.1", "--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.5",
        "--lr-patience", "2", "--patience", "4",
    ]  # fmt: skip


def model_and_size(row: str) -> tuple[str, int]:
    """The two parts of a row's name: "Tf+Nd d=160"."""
    model, size = row.split(" d=")
    return model, int(size)


class Europarl(Recipe):
    """Perplexity of a subword on newstest2016, BLEU and chrF on newstest2017."""

    paper = "stack_attention"
    table = "3"
    family = "stack attention translation"
    rows = tuple(f"{model} d={size}" for size in SIZES for model in ("Tf", "Tf+Sup", "Tf+Nd"))
    smoke_rows = ("Tf+Nd d=160",)
    seeds = {"smoke": 1, "small": 1, "paper": 5}
    licence = "Europarl and WMT news test sets: for research; made-up pairs at the smoke scale: none needed"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """All rows.  Raises ValueError at scale small, which there is not."""
        found = super().cells(scale, seeds)
        self.setting(found[0])
        return found

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {"copy": self.rows[0]} if scale in SETTINGS else {}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        return measure("copy", data, languages=LANGUAGES)

    def setting(self, cell: Cell) -> Setting:
        """What the cell's scale chooses.  Raises ValueError at scale small, which there is not."""
        if cell.scale not in SETTINGS:
            raise ValueError("table 3 has the scales smoke and paper; at scale small see recipes/multi30k")
        return SETTINGS[cell.scale]

    def draws(self, cell: Cell) -> Mapping[str, float]:
        return draw(self.setting(cell).space, cell.seed)

    def size(self, cell: Cell) -> int:
        """The model size: the row's, but 32 at scale smoke."""
        return 32 if cell.scale == "smoke" else model_and_size(cell.row)[1]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        options = train_options(model_and_size(cell.row)[0], self.size(cell))
        return {**asdict(self.setting(cell)), "train_options": options, "decode_options": DECODE}

    def dataset(self, cell: Cell) -> str:
        setting = self.setting(cell)
        if cell.scale == "smoke":
            return f"{setting.pairs} made-up sentence pairs, size 32"
        return (
            f"{setting.pairs} pairs of Europarl v7 of at most 150 characters a side, newstest2016 and newstest2017 "
            f"alike, SentencePiece BPE of {setting.vocabulary} types of which those used {setting.min_frequency} times"
        )

    def estimate(self, cell: Cell) -> Estimate:
        self.setting(cell)
        if cell.scale == "smoke":
            return Estimate(0.5, 3.0)
        model, size = model_and_size(cell.row)
        slower = {"Tf": 1.0, "Tf+Sup": 1.5, "Tf+Nd": 3.0}[model]
        return Estimate(90.0 * slower * size / SIZES[0], 24.0 * size / 10, download=210.0)

    def prepare(self, run: Run) -> Path:
        setting = self.setting(run.cell)
        words: list[str | Path] = ["env", f"PYTHON={sys.executable}", "bash", SCRIPT, "--pairs", str(setting.pairs)]
        words += ["--vocabulary", str(setting.vocabulary), "--min-frequency", str(setting.min_frequency)]
        source = run.prepared("europarl-made-up", write_made_up) if run.cell.scale == "smoke" else run.source
        words += ["--from", source] if source else []

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell}: preparing the corpus")
            run.command([*words, "--out", folder])

        return run.prepared(f"europarl-{run.cell.scale}", make)

    def train(self, run: Run, data: Path) -> Path:
        setting = self.setting(run.cell)
        options = train_options(model_and_size(run.cell.row)[0], self.size(run.cell))
        options += ["--max-tokens", str(setting.max_tokens), "--lr", f"{self.draws(run.cell)['learning_rate']:.8g}"]
        return run.fairseq_train(data_path(data / "bin"), options, epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        references = list(read_lines(data / "raw" / "test.en"))
        decoded = generate(run, data / "bin" / "0", checkpoint, LANGUAGES, DECODE)
        lines = read_generate(read_lines(decoded), str(decoded), len(references))
        bleu, chrf = score(to_text(lines, "sentencepiece"), [references])
        run.progress.say(f"{run.cell}: {bleu.signature}")
        return [
            Measurement("validation_perplexity", validation_perplexity(run), "perplexity"),
            Measurement("test_bleu", bleu.value, "BLEU"),
            Measurement("test_chrf", chrf.value, "chrF2"),
            Measurement("parameters", run.parameters, "parameters"),
        ]


recipe = Europarl()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
