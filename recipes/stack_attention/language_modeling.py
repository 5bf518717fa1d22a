"""Single-sentence language modeling (Stack Attention, section 7 and appendix F): a Transformer alone, with a
superposition stack and with a nondeterministic stack in the third of five layers.

The rows of Table 2 are on the Penn Treebank as preprocessed by Dyer et al. (2016), which needs a licence: name a
folder with its .mrg files by --from.  They run at scale paper: for each of 20 runs a learning rate and a batch size
are drawn (--draws lists them), a validation every 20,000 sentences, the best of 20 by validation.
The rows of table 2-stand-ins are on free text in the same form, and say nothing about Table 2: nltk's sample of the
treebank, Brown and WikiText-2.  They also run at scale small: narrower models, 4,000 sentences, one learning rate.
Scale smoke has a few hundred made-up trees, which prove nothing.

Deviations: EOS stands for BOS at the input, as in fairseq; training sentences longer than a whole batch (at most 128
to 512 tokens) are left out; a shard of the training set is an epoch of fairseq's, so a learning rate of a plateau and
the patience count validations, and batches are made within a shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.data import sentences
from seqstruct.data.made_up.trees import ptb_sentences as write_made_up
from seqstruct.data.shards import data_path
from seqstruct.harness.baselines import ORDERS, measure, name_of
from seqstruct.harness.command import main
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.process import fairseq
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run
from seqstruct.harness.search import SearchSpace, draw

MODELS = ("Tf", "Tf+Sup", "Tf+Nd")
STAND_INS = {"treebank-sample": "nltk", "brown": "nltk", "wikitext2": "wikitext-2-raw"}  # folders of raw corpora
TASK = ("--task", "language_modeling", "--sample-break-mode", "eos", "--tokens-per-sample", "1024")
# table 2, appendix F.2; the ends of the learning rate are those of the released code
SCHEDULE = (
    "--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.5", "--lr-patience", "2", "--patience", "4",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    embed_dim: 8 heads, inner size 4 embed_dim; superposition stack of 2 embed_dim - 1, as published.
    train_sentences: at most, 0 for all.  epochs: shards at most.  space: what is drawn for each run.
    """

    embed_dim: int
    train_sentences: int
    epochs: int
    space: SearchSpace


SETTINGS = {
    "smoke": Setting(32, 0, 2, SearchSpace((0.005, 0.005), (512, 512))),
    "small": Setting(128, 4000, 6, SearchSpace((0.002, 0.002), (512, 512))),
    "paper": Setting(256, 0, 1000, SearchSpace((1e-6, 1e-4), (128, 512))),
}


def plan(model: str, embed_dim: int) -> str:
    """The attention of the five layers."""
    stacks = {
        "Tf+Sup": f"superposition_stack(size={2 * embed_dim - 1})",
        "Tf+Nd": "nondeterministic_stack(states=3, symbols=3, size=10)",
    }
    return f"softmax*2 + {stacks[model]} + softmax*2" if model in stacks else "softmax"


def train_options(model: str, embed_dim: int) -> list[str]:
    """fairseq-train's options; data, seed, epochs and what is drawn apart."""
    return [
        *TASK, "--criterion", "cross_entropy", "--arch", "structured_transformer_lm_ptb",
        "--decoder-embed-dim", str(embed_dim), "--decoder-self-attention", plan(model, embed_dim),
        "--optimizer", "adam", "--clip-norm", "5", "--max-tokens-valid", "4096", *SCHEDULE,
    ]  # fmt: skip


def corpus_and_model(row: str) -> tuple[str, str]:
    """The two parts of a row's name; the corpus of Table 2 has none."""
    corpus, _, model = row.rpartition(" ")
    return corpus or "ptb", model


class LanguageModeling(Recipe):
    """Perplexity of a word, EOS counted as one, unknown words by their class."""

    paper = "stack_attention"
    table = "2"
    family = "stack attention sentence language models"
    rows = (*MODELS, *(f"{corpus} {model}" for corpus in STAND_INS for model in MODELS))
    smoke_rows = ("Tf+Nd",)
    seeds = {"smoke": 1, "small": 1, "paper": 20}
    licence = (
        "Penn Treebank: of the Linguistic Data Consortium; nltk's sample of it and Brown: non-commercial; WikiText-2: "
        "CC BY-SA; made-up sentences at the smoke scale: none needed"
    )
    progress_metric = "ppl"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """All rows, but those of Table 2 not at scale small."""
        return [cell for cell in super().cells(scale, seeds) if scale != "small" or cell.row not in MODELS]

    def baselines(self, scale: str) -> Mapping[str, str]:
        corpora = [f"{corpus} " for corpus in STAND_INS]
        corpora = {"smoke": [""], "small": corpora, "paper": ["", *corpora]}[scale]
        return {f"{corpus}{name}": f"{corpus}Tf" for corpus in corpora for name in ORDERS}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        return measure(name_of(row), data, sentences=True)

    def draws(self, cell: Cell) -> Mapping[str, float]:
        return draw(SETTINGS[cell.scale].space, cell.seed)

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        options = train_options(corpus_and_model(cell.row)[1], setting.embed_dim)
        return {**asdict(setting), "train_options": options}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        corpus, _ = corpus_and_model(cell.row)
        if cell.scale == "smoke":
            return f"600 made-up trees, at most {setting.epochs} epochs"
        if corpus == "ptb":
            return "Penn Treebank, sections 02-21, 24 and 23, unknown words in classes as in Dyer et al. (2016)"
        count = f"the first {setting.train_sentences}" if setting.train_sentences else "all"
        text = f"{corpus} (no part of the published comparison), {count} training sentences, at most {setting.epochs} "
        return text + f"epochs, size {setting.embed_dim}, learning rate {self.draws(cell)['learning_rate']:.2g}"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.4, "small": 3.0, "paper": 60.0}[cell.scale]
        slower = {"Tf": 1.0, "Tf+Sup": 1.3, "Tf+Nd": 1.6}[corpus_and_model(cell.row)[1]]
        return Estimate(minutes * slower, {"smoke": 2.0, "small": 60.0, "paper": 260.0}[cell.scale])

    def prepare(self, run: Run) -> Path:
        corpus, _ = corpus_and_model(run.cell.row)
        setting = SETTINGS[run.cell.scale]
        if run.cell.scale == "smoke":
            source: Path | None = run.prepared("made-up-trees", write_made_up)
            corpus = "ptb"
        elif corpus == "ptb":
            source = run.source
        else:
            source = run.raw_data(STAND_INS[corpus])
        if corpus == "ptb" and run.cell.scale == "small":
            raise ValueError(f"row {run.cell.row} is Table 2's: it has the scales paper and smoke")
        if source is None:
            raise ValueError(f"row {run.cell.row}: --from DIR is needed, with {corpus} in it; nothing is downloaded")
        if corpus == "treebank-sample":
            source = source / "treebank.zip"

        def make(folder: Path) -> None:
            sentences.prepare(corpus, source, folder, train_sentences=setting.train_sentences)

        return run.prepared(f"sentences-{corpus}-{setting.train_sentences or run.cell.scale}", make)

    def train(self, run: Run, data: Path) -> Path:
        _, model = corpus_and_model(run.cell.row)
        setting = SETTINGS[run.cell.scale]
        drawn = self.draws(run.cell)
        options = train_options(model, setting.embed_dim)
        options += ["--lr", f"{drawn['learning_rate']:.8g}", "--max-tokens", str(drawn["max_tokens"])]
        return run.fairseq_train(data_path(data / "bin"), options, epochs=setting.epochs)

    def table_of(self, cell: Cell) -> str:
        return self.table if corpus_and_model(cell.row)[0] == "ptb" else "2-stand-ins"

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        found = perplexities(run, data, checkpoint)
        return [
            Measurement("validation_perplexity", found["valid"], "perplexity"),
            Measurement("test_perplexity", found["test"], "perplexity"),
            Measurement("parameters", run.parameters, "parameters"),
        ]


def perplexities(run: Run, data: Path, checkpoint: Path) -> dict[str, float]:
    """Of the validation and the test set, by fairseq-validate."""
    log = run.folder / "validate.log"
    log.unlink(missing_ok=True)
    command = [*fairseq("validate"), data_path(data / "bin"), "--user-dir", PLUGIN, *TASK, "--path", checkpoint]
    command += ["--valid-subset", "valid,test", "--max-tokens", "4096", "--log-format", "json", "--num-workers", "0"]
    run.command(command + (["--cpu"] if run.cell.scale != "paper" else []), log.name)
    entries = parse_lines(log.read_text(encoding="utf-8").splitlines())
    found = ((entry.tag, f"{entry.tag}_ppl", entry.statistics) for entry in entries)
    return {split: statistics[name] for split, name, statistics in found if name in statistics}


recipe = LanguageModeling()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
