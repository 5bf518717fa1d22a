"""Syntactic-then-semantic parsing (Peng 2022, section 2.4.1, Tables 2.1 and 2.3): the heads of an intermediate
dependency tree as features of a semantic dependency parser, and how the one trains the other.

The corpora are free stand-ins, never to be compared with the published figures, which syntax_then_graph_published.py
is for: UD English ParTUT for trees, and for graphs the enhanced dependencies of UD English EWT, whose development file
is split for training.  Scale paper takes the published model, training and eta (1), with these corpora.  At the others
each row first tries the same learning rates, and where it has an eta the same etas with each of them; the labeled F1 of
the validation graphs after a few epochs decides, and all seeds of the row are trained with what it chose.

The three kinds of change of section 2.5 are counted on the validation graphs, against the pipeline's run of the same
seed, which is made first if it is not there.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from seqstruct.data.conllu import read_conllu
from seqstruct.data.made_up.graphs import parsing as write_made_up
from seqstruct.data.parsing.folder import Corpus, Options, write_folder
from seqstruct.data.parsing.sentence import graph_of, tree_of
from seqstruct.harness.command import main
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.process import fairseq
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run
from seqstruct.harness.search import try_settings
from seqstruct.scoring.intermediate import compare_trees

METHODS = {"no syntax": "none", "PIPELINE": "pipeline", "SA": "marginal", "STE": "ste", "SPIGOT": "spigot"}
PIPELINE = "PIPELINE"
COMMON = ("--task", "joint_parsing", "--criterion", "joint_parsing", "--optimizer", "adam", "--clip-norm", "5",
          "--best-checkpoint-metric", "labeled_f1", "--maximize-best-checkpoint-metric")  # fmt: skip


# appendix C: halved every five epochs
HALVED = ("--lr-scheduler", "fixed", "--lr", ",".join(f"{0.001 * 0.5 ** (epoch // 5):g}" for epoch in range(30)))


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.  options: of fairseq-train, for sizes and the optimizer.

    rates, etas: what is tried for search_epochs; nothing where there are none.
    """

    epochs: int
    options: tuple[str, ...]
    rates: tuple[float, ...] = ()
    etas: tuple[float, ...] = ()
    search_epochs: int = 0


SMALL = ("--arch", "joint_parser_small", "--batch-size", "16", "--lr", "0.004", "--lr-scheduler", "inverse_sqrt",
         "--warmup-updates", "500", "--word-dim", "64", "--lemma-dim", "0", "--tag-dim", "32")  # fmt: skip
SETTINGS = {
    "smoke": Setting(2, (*SMALL, "--lstm-size", "16", "--mlp-size", "16"), (0.004,), (0.1, 1.0), 1),
    "small": Setting(12, SMALL, (0.004, 0.008), (0.03, 0.1, 0.3, 1.0), 8),
    "paper": Setting(30, ("--arch", "joint_parser", "--batch-size", "16", "--prune-below", "0.001", *HALVED)),
}


class Point(NamedTuple):
    """One setting of a search.  eta: None for a method that has none."""

    rate: float
    eta: float | None

    def __str__(self) -> str:
        return f"rate {self.rate:g}" + ("" if self.eta is None else f", eta {self.eta:g}")

    @property
    def options(self) -> list[str]:
        """fairseq-train's."""
        return ["--lr", f"{self.rate:g}", *([] if self.eta is None else ["--step-size", f"{self.eta:g}"])]


def points(method: str, setting: Setting) -> list[Point]:
    """What is tried for a method."""
    etas = setting.etas if METHODS[method] in ("ste", "spigot") else (None,)
    return [Point(rate, eta) for rate, eta in itertools.product(setting.rates, etas)]


def method_options(method: str) -> list[str]:
    """fairseq-train's options for how the end task trains the intermediate parser."""
    gradient = METHODS[method]
    if gradient == "none":
        return ["--intermediate", "none"]
    loss = "likelihood" if gradient == "marginal" else "hinge"
    return ["--intermediate", "tree", "--gradient", gradient, "--tree-loss", loss]


class SyntaxThenGraph(Recipe):
    """Labeled and unlabeled F1 of graphs; attachment of the intermediate trees; how they differ from the pipeline's."""

    paper = "peng_thesis"
    table = "2.1-stand-in"
    family = "structured argmax"
    rows = tuple(METHODS)
    smoke_rows = ("SPIGOT",)
    seeds = {"smoke": 1, "small": 3, "paper": 1}
    licence = "UD English ParTUT (CC BY-NC-SA), UD English EWT (CC BY-SA); made-up sentences at smoke: none needed"
    progress_metric = "labeled_f1"

    def baselines(self, scale: str) -> Mapping[str, str]:
        return dict.fromkeys(("previous word", "next word"), "no syntax")

    def method(self, cell: Cell) -> str:
        """The row's method."""
        return cell.row

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        return {**asdict(setting), "train_options": [*COMMON, *method_options(self.method(cell))]}

    def dataset(self, cell: Cell) -> str:
        if cell.scale == "smoke":
            return "made-up sentences of five or six words"
        return (
            "trees of UD English ParTUT, enhanced dependencies (universal labels) of UD English EWT: of its dev "
            f"file 1,801 sentences to train, 200 to validate; the test file; {SETTINGS[cell.scale].epochs} epochs"
        )

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate(minutes={"smoke": 0.4, "small": 8.0, "paper": 900.0}[cell.scale], disk=30.0)

    def prepare(self, run: Run) -> Path:
        if run.cell.scale == "smoke":
            return run.prepared("parsing-made-up", write_made_up)
        return run.prepared("parsing-partut-ewt", lambda folder: write_stand_ins(run, folder))

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        options = [*COMMON, *setting.options, *method_options(self.method(run.cell))]
        searched = self.search(run, data)
        if searched:
            options += max(searched, key=searched.__getitem__).options
        return run.fairseq_train(data, options, epochs=setting.epochs)

    def search(self, run: Run, data: Path) -> dict[Point, float]:
        """The validation labeled F1 of each setting tried."""
        setting, method = SETTINGS[run.cell.scale], self.method(run.cell)
        tried = points(method, setting)
        if not tried:
            return {}
        options = [*COMMON, *setting.options, *method_options(method)]
        settings = {str(point): [*options, *point.options] for point in tried}
        found = try_settings(run, data, settings, epochs=setting.search_epochs, metric="labeled_f1")
        return {point: found[str(point)] for point in tried}

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        method = self.method(run.cell)
        valid, test = (validated(run, data, checkpoint, split) for split in ("valid", "test"))
        found = [
            Measurement("validation_labeled_f1", valid["labeled_f1"], "%"),
            Measurement("test_labeled_f1", test["labeled_f1"], "%"),
            Measurement("test_unlabeled_f1", test["unlabeled_f1"], "%"),
        ]
        if "intermediate_uas" in test:
            found.append(Measurement("test_graph_sentences_uas", test["intermediate_uas"], "%"))
            found.append(Measurement("test_trees_uas", test["uas"], "%"))
        if method in ("STE", "SPIGOT"):
            found += self._changes(run, data, checkpoint)
        return [*found, *searched_measurements(self.search(run, data))]

    def _changes(self, run: Run, data: Path, checkpoint: Path) -> list[Measurement]:
        """Table 2.3 and the kinds of change, against the pipeline's run of the same seed."""
        row = run.cell.row.replace(self.method(run.cell), PIPELINE)
        pipeline = Run(
            self, Cell(row, run.cell.seed, run.cell.scale), run.root.parent, progress=run.progress,
            source=run.source, max_minutes=run.max_minutes,
        )  # fmt: skip
        pipeline.folder.mkdir(parents=True, exist_ok=True)
        graphs = next(name for name in read_names(data) if name != "trees")
        both = compare_trees(data, graphs, "valid", self.train(pipeline, data), checkpoint)
        return [Measurement(name, value, unit, table=f"2.3{self.table[3:]}") for name, value, unit in both]


def searched_measurements(searched: Mapping[Point, float]) -> list[Measurement]:
    """What was chosen, and the validation labeled F1 that decided: for each rate the best, and by eta."""
    if not searched:
        return []
    best = max(searched, key=searched.__getitem__)
    found = [Measurement("chosen_learning_rate", best.rate, "rate")]
    if best.eta is not None:
        found.append(Measurement("chosen_eta", best.eta, "eta"))
    for rate in dict.fromkeys(point.rate for point in searched):
        of_rate = [(point.eta, f1) for point, f1 in searched.items() if point.rate == rate]
        series = {} if best.eta is None else {"axis": "eta", "points": of_rate}
        found.append(Measurement(f"search_f1_at_rate_{rate:g}", max(f1 for _, f1 in of_rate), "%", **series))
    return found


def read_names(data: Path) -> list[str]:
    """Names of the corpora in a prepared folder, in order."""
    from seqstruct.data.parsing.folder import read_meta

    return list(read_meta(data)["corpora"])


def validated(run: Run, data: Path, checkpoint: Path, split: str) -> dict[str, float]:
    """The statistics of fairseq-validate on a split, without the split's name before them."""
    log = run.folder / f"validate-{split}.log"
    log.unlink(missing_ok=True)
    run.command(
        [*fairseq("validate"), data, "--user-dir", PLUGIN, "--task", "joint_parsing", "--criterion", "joint_parsing",
         "--path", checkpoint, "--valid-subset", split, "--batch-size", "32", "--log-format", "json", "--num-workers",
         "0", *(["--cpu"] if run.cell.scale != "paper" else [])],
        log.name,
    )  # fmt: skip
    found: dict[str, float] = {}
    for entry in parse_lines(log.read_text(encoding="utf-8").splitlines()):
        if entry.tag == split:
            found = {name.removeprefix(f"{split}_"): value for name, value in entry.statistics.items()}
    return found


def stand_in_graphs(run: Run) -> Corpus:
    """Enhanced dependencies of UD English EWT: 1,801 of the development file's sentences, its other 200, and the test
    file's.  Raises ValueError if the files are not on disk.
    """
    source = run.raw_data("ud-ewt")
    if source is None:
        raise ValueError(
            "UD English EWT is not on disk: --from names a folder with en_ewt-ud-{dev,test}.conllu of "
            "github.com/UniversalDependencies/UD_English-EWT"
        )
    dev, test = (
        [graph_of(sentence, coarse=True) for sentence in read_conllu(source / f"en_ewt-ud-{split}.conllu")]
        for split in ("dev", "test")
    )
    return Corpus("graphs", {"train": dev[:-200], "valid": dev[-200:], "test": test})


def write_stand_ins(run: Run, folder: Path) -> None:
    """The free trees and graphs.  Raises ValueError if a file is not on disk."""
    source = run.raw_data("ud-partut")
    if source is None:
        raise ValueError(
            "UD English ParTUT is not on disk: --from names a folder with en_partut-ud-{train,dev,test}.conllu of "
            "github.com/UniversalDependencies/UD_English-ParTUT, and the files of EWT"
        )
    names = {"train": "train", "valid": "dev", "test": "test"}
    trees = {
        split: [tree_of(sentence) for sentence in read_conllu(source / f"en_partut-ud-{name}.conllu")]
        for split, name in names.items()
    }
    corpora = {"trees": Corpus("trees", trees), "ewt": stand_in_graphs(run)}
    write_folder(corpora, folder, Options(max_length=60))


recipe = SyntaxThenGraph()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
