"""Multi30k (Elliott et al. 2016), German to English: softmax, and a stack in the third layer of both sides.

The comparison of Stack Attention, section 8, on a corpus that a laptop can train on.  Beam 4, sacreBLEU on the raw
references of test_2016_flickr.  Scale paper takes the published models and training (5 + 5 layers, d = 160); scale
small 3 + 3 layers, d = 128 and nine epochs; scale smoke a few hundred made-up sentence pairs, which prove nothing.

The runs keep what they decoded as generate-test.txt, so that two of them can be compared by a paired bootstrap:
    seqstruct score --from-generate RUN/generate-test.txt --against OTHER/generate-test.txt
        --references DATA/raw/test.en --subwords bpe --detokenize en
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.data.made_up.translation import multi30k as write_made_up
from seqstruct.harness.baselines import measure
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.harness.translate import corpus_scores, validation_perplexity

SCRIPT = Path(__file__).resolve().parents[2] / "data-prep" / "multi30k.sh"
SOURCE, TARGET = "de", "en"
STACKS = {
    "Tf+Sup": "superposition_stack(size={embed_dim})",
    "Tf+Nd": "nondeterministic_stack(states=3, symbols=3, size=5)",
}


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    layers: of each side, 3 or more.  vocabulary: joint BPE types.  max_tokens: of a batch, padding included.
    options: of fairseq-train, for the architecture and the optimizer.
    """

    layers: int
    embed_dim: int
    vocabulary: int
    max_tokens: int
    epochs: int
    options: tuple[str, ...]


def compact(embed_dim: int, ffn_embed_dim: int, updates: int, learning_rate: float) -> tuple[str, ...]:
    """The preset of this corpus at another size; the learning rate falls linearly to 0, so that few epochs suffice."""
    sizes = [
        word
        for side in ("encoder", "decoder")
        for word in (f"--{side}-embed-dim", str(embed_dim), f"--{side}-ffn-embed-dim", str(ffn_embed_dim))
    ]
    return (
        "--arch", "structured_transformer_small", *sizes, "--dropout", "0.1", "--lr", f"{learning_rate:g}",
        "--lr-scheduler", "polynomial_decay", "--warmup-updates", str(updates // 10),
        "--total-num-update", str(updates), "--clip-norm", "1", "--adam-betas", "(0.9, 0.98)",
    )  # fmt: skip


# section 8 and appendix G; the published learning rate is drawn anew for each run, here it is one within that range
_PUBLISHED = (
    "--arch", "structured_transformer_stack_europarl", "--decoder-embed-dim", "160", "--lr", "0.0005",
    "--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.5", "--lr-patience", "2", "--patience", "4",
    "--clip-norm", "5",
)  # fmt: skip
SETTINGS = {
    "smoke": Setting(3, 32, 150, 500, 8, compact(32, 64, 200, 0.005)),
    "small": Setting(3, 128, 5000, 1000, 9, compact(128, 256, 5140, 0.004)),
    "paper": Setting(5, 160, 10000, 2048, 100, _PUBLISHED),
}


def plan(row: str, setting: Setting) -> str:
    """The attention of each side: softmax, or with the row's stack in the third layer."""
    if row not in STACKS:
        return "softmax"
    layers = ["softmax*2", STACKS[row].format(embed_dim=setting.embed_dim)]
    if setting.layers > 3:
        layers.append(f"softmax*{setting.layers - 3}")
    return " + ".join(layers)


def train_options(row: str, setting: Setting) -> list[str]:
    """fairseq-train's options, data, seed and epochs apart."""
    return [
        "--task", "translation", "--source-lang", SOURCE, "--target-lang", TARGET, *setting.options,
        "--encoder-layers", str(setting.layers), "--decoder-layers", str(setting.layers),
        "--encoder-self-attention", plan(row, setting), "--decoder-self-attention", plan(row, setting),
        "--optimizer", "adam", "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1",
        "--max-tokens", str(setting.max_tokens),
    ]  # fmt: skip


class Multi30k(Recipe):
    """BLEU and chrF on test_2016_flickr, perplexity on the validation set."""

    paper = "stack_attention"
    table = "multi30k"
    family = "stack attention translation"
    rows = ("Tf", *STACKS)
    smoke_rows = ("Tf+Sup",)
    seeds = {"smoke": 1, "small": 1, "paper": 5}
    licence = "Multi30k: for research; made-up sentences at the smoke scale: none needed"

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {"copy": "Tf"}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        return measure("copy", data, languages=(SOURCE, TARGET))

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        return {**asdict(setting), "train_options": train_options(cell.row, setting), "decode_options": DECODE}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        text = f"joint BPE of {setting.vocabulary} types, at most {setting.epochs} epochs"
        if cell.scale == "smoke":
            return f"400 made-up sentence pairs, {text}"
        return f"Multi30k de-en task 1, 29000 pairs, test_2016_flickr, {text}"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.4, "small": 17.0, "paper": 60.0}[cell.scale]
        slower = {"Tf": 1.0, "Tf+Sup": 1.2, "Tf+Nd": 1.7}[cell.row]
        download = 0.0 if cell.scale == "smoke" else 1.3
        disk = {"smoke": 2.0, "small": 50.0, "paper": 180.0}[cell.scale]
        return Estimate(minutes * slower, disk, download)

    def prepare(self, run: Run) -> Path:
        setting = SETTINGS[run.cell.scale]
        words = ["env", f"PYTHON={sys.executable}", "bash", SCRIPT, "--src", SOURCE, "--trg", TARGET]
        words += ["--vocabulary", str(setting.vocabulary)]
        if run.cell.scale == "smoke":
            raw = run.prepared("multi30k-made-up", write_made_up)
            name = f"multi30k-smoke-{setting.vocabulary}"
            words += ["--from", raw, "--unchecked"]
        else:
            name = f"multi30k-{SOURCE}-{TARGET}-bpe{setting.vocabulary}"
            source = run.raw_data("multi30k")
            words += ["--from", source] if source else []

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell}: preparing the corpus")
            run.command([*words, "--out", folder])

        return run.prepared(name, make)

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        return run.fairseq_train(data / "bin", train_options(run.cell.row, setting), epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        bleu, chrf = corpus_scores(run, data, checkpoint, (SOURCE, TARGET), DECODE)
        return [
            Measurement("validation_perplexity", validation_perplexity(run), "perplexity"),
            Measurement("test_bleu", bleu.value, "BLEU"),
            Measurement("test_chrf", chrf.value, "chrF2"),
        ]


# --lenpen 1 divides a hypothesis's log-probability by its length, as appendix G.4 does
DECODE = ("--gen-subset", "test", "--beam", "4", "--lenpen", "1", "--max-len-a", "1.5", "--max-len-b", "10")


recipe = Multi30k()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
