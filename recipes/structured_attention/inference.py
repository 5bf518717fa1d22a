"""Natural language inference (Structured Attention Networks, section 4.4, Table 5): decomposable attention with five
kinds of attention inside each sentence.

Scale paper is SNLI with GloVe in the published setting; hard parents need parses of an external parser among the raw
data, in heads/, as `seqstruct parse-dependencies` writes them.  Scale small is RTE 1 to 3 instead, 1,591 pairs, with
word vectors that are drawn and trained, smaller layers and Adam; its pretraining takes UD English ParTUT, and its hard
parents come from a joint_parser that is trained on the trees of UD English ParTUT and of UD English EWT's development
file, with the tags of a tagger learned from the Brown corpus.  Scale smoke takes made-up pairs.  Each run with trees
leaves tree.txt: the learned tree of a test sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from seqstruct.data.aligned import read_lines
from seqstruct.data.files import atomic_write
from seqstruct.data.made_up.inference import rte as write_made_up
from seqstruct.data.nli.folder import read_corpus, read_meta, read_split
from seqstruct.harness.command import main
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.process import fairseq, run_command
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run

SEQSTRUCT = (sys.executable, "-m", "seqstruct")
SCRIPT = Path(__file__).resolve().parents[2] / "data-prep" / "snli.sh"
PRETRAINED = "Pretrained structured attention"
HARD = "No attention + hard parent"
MECHANISMS = {
    "No attention": "none",
    HARD: "hard_parents",
    "Simple attention": "simple(hidden_size={parser_size})",
    "Structured attention": "dependency(hidden_size={parser_size})",
    PRETRAINED: "dependency(hidden_size={parser_size})",
}


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    hidden_size: of the model; parser_size: of each direction of the parsing LSTM; word_dim: of word vectors where none
    are given; deviation: of initial parameters.  optimizer: fairseq-train's options.  parser: fairseq-train's of the
    parser of hard parents, none where parses are given.
    """

    hidden_size: int
    parser_size: int
    word_dim: int
    deviation: float
    batch_size: int
    epochs: int
    optimizer: tuple[str, ...]
    parser: tuple[str, ...] = ()


_PUBLISHED = ("--optimizer", "adagrad", "--lr", "0.05", "--initial-accumulator", "0.1")
_ADAM = ("--optimizer", "adam", "--lr", "0.001")
_PARSER = (
    "--task", "joint_parsing", "--criterion", "joint_parsing", "--arch", "joint_parser_small", "--intermediate", "none",
    "--lemma-dim", "0", "--optimizer", "adam", "--clip-norm", "5", "--lr", "0.004", "--lr-scheduler", "inverse_sqrt",
    "--warmup-updates", "500", "--best-checkpoint-metric", "uas", "--maximize-best-checkpoint-metric", "--cpu",
    "--num-workers", "0", "--log-format", "json", "--log-interval", "100", "--no-epoch-checkpoints", "--seed", "1",
    "--update-epoch-batch-itr", "True", "--batch-size", "16",
)  # fmt: skip
SETTINGS = {
    "smoke": Setting(20, 10, 20, 0.1, 16, 3, _ADAM, (*_PARSER, "--tag-dim", "0", "--max-epoch", "1")),
    "small": Setting(100, 50, 100, 0.05, 32, 6, _ADAM,
                     (*_PARSER, "--word-dim", "64", "--tag-dim", "32", "--max-epoch", "12")),
    "paper": Setting(300, 100, 300, 0.01, 32, 100, _PUBLISHED),
}


def mechanism(row: str, setting: Setting) -> str:
    """The attention inside the sentences of a row."""
    return MECHANISMS[row].format(**asdict(setting))


def model_options(row: str, setting: Setting) -> list[str]:
    """What decides the shapes of the model."""
    return [
        "--intra-attention", mechanism(row, setting), "--hidden-size", str(setting.hidden_size),
        "--word-dim", str(setting.word_dim),
    ]  # fmt: skip


def train_options(row: str, setting: Setting) -> list[str]:
    """fairseq-train's options, data, seed, epochs and the pretrained parser apart (appendix A.5)."""
    return [
        "--task", "nli", "--criterion", "classification_cross_entropy", "--arch", "decomposable_attention",
        *model_options(row, setting), "--dropout", "0.2", "--initialization-deviation", f"{setting.deviation:g}",
        *setting.optimizer, "--clip-norm", "5", "--batch-size", str(setting.batch_size),
        "--best-checkpoint-metric", "accuracy", "--maximize-best-checkpoint-metric",
    ]  # fmt: skip


class Inference(Recipe):
    """Accuracy on the test set, at the checkpoint of the best validation accuracy."""

    paper = "structured_attention"
    table = "5"
    stand_in = "5-rte"
    family = "natural language inference"
    rows = tuple(MECHANISMS)
    smoke_rows = (PRETRAINED,)
    seeds = {"smoke": 1, "small": 1, "paper": 1}
    licence = (
        "SNLI: CC BY-SA 4.0; GloVe: public domain; RTE, Brown: for research; UD ParTUT: CC BY-NC-SA; UD EWT: CC BY-SA"
    )
    progress_metric = "accuracy"

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {"majority": "No attention"}

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        return {**asdict(setting), "train_options": train_options(cell.row, setting)}

    def dataset(self, cell: Cell) -> str:
        s = SETTINGS[cell.scale]
        if cell.scale == "smoke":
            return "120 made-up pairs, in place of SNLI"
        text = "SNLI 1.0 with GloVe 840B"
        if cell.scale == "small":
            text = "RTE 1 to 3 in place of SNLI: 1591 pairs to train, 176 to validate, 2400 to test; no word vectors"
            if cell.row == PRETRAINED:
                text += ", parser pretrained on UD English ParTUT"
            elif cell.row == HARD:
                text += ", heads by a joint_parser trained on UD English ParTUT and UD English EWT's dev file"
        return f"{text}, hidden size {s.hidden_size}, {s.epochs} epochs"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.3, "small": 1.0, "paper": 1500.0}[cell.scale]
        slower = 2.0 if "tructured" in cell.row else 1.0
        return Estimate(minutes * slower, 50.0 if cell.scale != "paper" else 6000.0,
                        0.0 if cell.scale != "paper" else 2200.0)

    def prepare(self, run: Run) -> Path:
        words: list[Any] = ["env", f"PYTHON={sys.executable}", "bash", SCRIPT]
        if run.cell.scale == "paper":
            name, source = "snli", run.raw_data("snli")
            words += ["--from", source] if source else []
            heads = source / "heads" if source and (source / "heads").is_dir() else None
            if run.cell.row == HARD and heads is None:
                raise ValueError(f"the row {HARD!r} needs parses: --from names a folder of SNLI with heads/")
        else:
            name = f"rte-{run.cell.scale}"
            words += ["--corpus", "rte", "--from", self.source(run), "--no-vectors", "--lowercase"]
            heads = self.parses(run) if run.cell.row == HARD else None
        if heads is not None:
            name, words = f"{name}-heads", [*words, "--heads", heads]

        def make(folder: Path) -> None:
            run.command([*words, "--out", folder])

        return run.prepared(name, make)

    def parses(self, run: Run) -> Path:
        """The folder with the trees of all sentences by our own parser, which is trained first: parser.log says how."""
        small = run.cell.scale == "small"
        pairs = read_corpus("rte", self.source(run))

        def make(folder: Path) -> None:
            trees = {"train": [self.treebank(run)], "valid": [self.treebank(run, "dev")]}
            tagger = ["--tagger", self.source(run) / "brown.zip"] if small else []
            if small:
                trees["train"].append(self.treebank(run, "dev", "ewt"))
            files = [f"{split}={path}" for split, paths in trees.items() for path in paths]
            run.command([*SEQSTRUCT, "prepare", "parsing", "--trees", *files, *tagger, "--max-length", "60",
                         "--out", folder / "trees"])  # fmt: skip
            training = [*fairseq("train"), folder / "trees", "--user-dir", PLUGIN, *SETTINGS[run.cell.scale].parser]
            run_command([*training, "--save-dir", folder / "parser"], folder / "parser.log", threads=run.threads)
            texts = []
            for split, (found, _) in pairs.items():
                for side in ("premise", "hypothesis"):
                    texts.append(folder / f"{split}.{side}.txt")
                    with atomic_write(texts[-1]) as stream:
                        stream.writelines(" ".join(getattr(pair, side)) + "\n" for pair in found)
            best = folder / "parser" / "checkpoint_best.pt"
            run.command([*SEQSTRUCT, "parse-dependencies", *texts, "--checkpoint", best, *tagger,
                         "--out", folder / "heads"])  # fmt: skip

        return run.prepared(f"parses-rte-{run.cell.scale}", make) / "heads"

    def source(self, run: Run) -> Path:
        """The folder with rte.zip.  Raises ValueError if there is none."""
        if run.cell.scale == "smoke":
            return run.prepared("rte-made-up", write_made_up)
        source = run.raw_data("nltk")
        if source is None:
            raise ValueError("scale small needs nltk's rte.zip: name its folder by --from")
        return source

    def treebank(self, run: Run, split: str = "train", corpus: str = "partut") -> Path:
        """Trees to train parsers on.  Raises ValueError if there are none."""
        if run.cell.scale == "smoke":
            return self.source(run) / "treebank.conllu"
        name = f"en_{corpus}-ud-{split}.conllu"
        folders = [folder for folder in (run.source, run.raw_data(f"ud-{corpus}")) if folder is not None]
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
        raise ValueError(f"the row {run.cell.row!r} needs {name} of UD English among the raw data")

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        options = train_options(run.cell.row, setting)
        if run.cell.row == PRETRAINED:
            parser = run.folder / "parser.pt"
            if not parser.exists():
                run.command([sys.executable, "-m", "seqstruct.data.nli.parser_pretraining", data, "--treebank",
                             self.treebank(run), "--out", parser, "--seed", str(run.cell.seed),
                             *model_options(run.cell.row, setting)])  # fmt: skip
            options += ["--pretrained-parser", str(parser)]
        return run.fairseq_train(data, options, epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        accuracy = accuracies(run, data, checkpoint)
        if "tructured" in run.cell.row:
            drawn = learned_tree(data, checkpoint)
            with atomic_write(run.folder / "tree.txt") as stream:
                stream.write(drawn)
            run.progress.say(f"{run.cell}: the tree of a test sentence\n{drawn.rstrip()}")
        found = [
            Measurement("test_accuracy", accuracy["test"], "%"),
            Measurement("validation_accuracy", accuracy["valid"], "%"),
        ]
        if run.cell.row == HARD and run.cell.scale != "paper":
            log = read_lines(self.parses(run).parent / "parser.log")
            uas = max(entry.statistics.get("valid_uas", 0.0) for entry in parse_lines(log))
            found.append(Measurement("parser_validation_uas", uas, "%"))
        return found


def accuracies(run: Run, data: Path, checkpoint: Path) -> dict[str, float]:
    """In percent, of the validation and the test set, by fairseq-validate."""
    log = run.folder / "validate.log"
    log.unlink(missing_ok=True)
    run.command(
        [*fairseq("validate"), data, "--user-dir", PLUGIN, "--task", "nli", "--criterion",
         "classification_cross_entropy", "--path", checkpoint, "--valid-subset", "valid,test", "--batch-size", "50",
         "--required-batch-size-multiple", "1", "--log-format", "json", "--num-workers", "0",
         *(["--cpu"] if run.cell.scale != "paper" else [])],
        log.name,
    )  # fmt: skip
    statistics: dict[str, float] = {}
    for entry in parse_lines(log.read_text(encoding="utf-8").splitlines()):
        statistics.update(entry.statistics)
    return {split: statistics[f"{split}_accuracy"] for split in ("valid", "test")}


def learned_tree(data: Path, checkpoint: Path, shortest: int = 6, longest: int = 14) -> str:
    """The most probable tree of the first hypothesis of the test set of such a length.

    A line for each word: its number, the word, its head's number and the head.
    """
    from fairseq import checkpoint_utils

    import seqstruct.models
    import seqstruct.tasks  # noqa: F401  registers what the checkpoint names

    overrides = {"data": str(data), "pretrained_parser": None}
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides=overrides)
    model.eval()
    pairs = read_split(data, "test", read_meta(data)["labels"], task.vocabulary)
    words = next((p.hypothesis for p in pairs if shortest <= len(p.hypothesis) <= longest), pairs[0].hypothesis)
    heads = model.tree(torch.tensor([[task.vocabulary[word] for word in words]]))[0].tolist()
    named = ("ROOT", *words)
    arcs = enumerate(zip(words, heads, strict=True), 1)
    return "".join(f"{number}\t{word}\t{head}\t{named[head]}\n" for number, (word, head) in arcs)


recipe = Inference()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
