"""Sentiment over predicted semantic graphs (Peng 2022, section 2.4.2, Table 2.2): a classifier of sentences that sees
the averaged heads and roles of each word, and how its loss trains the parser.

The parser learns its graphs first, and then both learn together, with a fifth of the graphs in each epoch.  DM needs a
licence (LDC2016T10): at scale paper --from names a folder with dm.{train,dev}.sdp, stsa.binary.{train,dev,test} and
nltk's brown.zip.  Scale small takes the enhanced dependencies of UD English EWT as graphs, a stand-in.  Deviations at
every scale: the tags of all sentences are those of a tagger learned from the Brown corpus, where the source has NLTK's;
there are no lemmas; word embeddings are learned, where the source has GloVe.  Eta is the source's (appendix C.1.2), for
STE too, and not tuned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from syntax_then_graph import COMMON, HALVED, SMALL, stand_in_graphs, validated, write_made_up

from seqstruct.data.parsing.folder import Corpus, Options, write_folder
from seqstruct.data.parsing.prepare import read_classes
from seqstruct.data.parsing.sentence import AnnotatedSentence, graph_of_sdp
from seqstruct.data.parsing.tagger import Tagger, read_brown, retagged
from seqstruct.data.sdp import read_sdp
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

PARSER = "parser alone"
METHODS = {PARSER: "", "BiLSTM": "none", "PIPELINE": "pipeline", "STE": "ste", "SPIGOT": "spigot"}
ACCURACY = ("--best-checkpoint-metric", "accuracy", "--maximize-best-checkpoint-metric")


@dataclass(frozen=True)
class Setting:
    """What a scale chooses: epochs and fairseq-train's options, of the parser alone and of both."""

    graph_epochs: int
    graph_options: tuple[str, ...]
    epochs: int
    options: tuple[str, ...]


_BOTH = ("--lemma-dim", "0", "--batch-size", "32", "--step-size", "0.15625")
_SMALL = (*_BOTH, "--arch", "joint_parser_small", "--word-dim", "64", "--tag-dim", "32", "--lr", "0.003")
_SMOKE = (*_SMALL, "--lstm-size", "16", "--mlp-size", "16")
_PAPER = (*_BOTH, "--arch", "joint_parser", "--word-dim", "300", *HALVED)
SETTINGS = {
    "smoke": Setting(1, _SMOKE, 2, _SMOKE),
    "small": Setting(20, (*SMALL, "--batch-size", "8"), 3, _SMALL),
    "paper": Setting(30, _PAPER, 30, _PAPER),
}


class GraphSentiment(Recipe):
    """Accuracy of the classes, and labeled F1 of the graphs after the end task's training."""

    paper = "peng_thesis"
    table = "2.2-stand-in"
    family = "structured argmax"
    rows = tuple(METHODS)
    smoke_rows = ("SPIGOT",)
    seeds = {"smoke": 1, "small": 2, "paper": 1}
    licence = (
        "SST, Brown: for research; UD English EWT (CC BY-SA); at paper LDC2016T10; made-up sentences at smoke: none"
    )
    progress_metric = "accuracy"

    def baselines(self, scale: str) -> Mapping[str, str]:
        return dict.fromkeys(("majority", "previous word", "next word"), "BiLSTM")

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        found = super().baseline(run, data, row)
        return found if row == "majority" else [found[0]._replace(metric="graphs_labeled_f1")]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {**asdict(SETTINGS[cell.scale]), "gradient": METHODS[cell.row], "common": COMMON}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        if cell.scale == "smoke":
            return "made-up sentences of five or six words"
        graphs = "DM" if cell.scale == "paper" else "enhanced dependencies of UD English EWT (1,801 sentences)"
        return (
            f"SST binary sentences; graphs: {graphs}; {setting.graph_epochs} epochs of the parser alone, "
            f"{setting.epochs} of both; learned word embeddings, tags of a tagger learned from the Brown corpus"
        )

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate(minutes={"smoke": 0.4, "small": 5.0, "paper": 400.0}[cell.scale], disk=30.0)

    def prepare(self, run: Run) -> Path:
        scale = run.cell.scale
        return run.prepared(f"tagged-graphs-and-sentiment-{scale}", lambda folder: write_corpora(run, folder))

    def train(self, run: Run, data: Path) -> Path:
        setting, gradient = SETTINGS[run.cell.scale], METHODS[run.cell.row]
        if run.cell.row == PARSER:
            options = [*COMMON, *setting.graph_options, "--corpora", "graphs"]
            return run.fairseq_train(data, options, epochs=setting.graph_epochs)
        options = [*COMMON[:8], *ACCURACY, *setting.options]
        if gradient == "none":
            return run.fairseq_train(data, [*options, "--corpora", "classes"], epochs=setting.epochs)
        alone = Run(
            self, Cell(PARSER, run.cell.seed, run.cell.scale), run.root.parent, progress=run.progress,
            source=run.source, max_minutes=run.max_minutes,
        )  # fmt: skip
        alone.folder.mkdir(parents=True, exist_ok=True)
        parser = self.train(alone, data)
        options += ["--intermediate", "graph", "--gradient", gradient, "--pretrained-parser", str(parser),
                    "--share-of-others", "0.2"]  # fmt: skip
        return run.fairseq_train(data, options, epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        if run.cell.row == PARSER:
            score = validated(run, data, checkpoint, "valid_graphs")["labeled_f1"]
            return [Measurement("graphs_labeled_f1", score, "%")]
        scores = {split: validated(run, data, checkpoint, f"{split}_classes") for split in ("valid", "test")}
        found = [
            Measurement("validation_accuracy", scores["valid"]["accuracy"], "%"),
            Measurement("test_accuracy", scores["test"]["accuracy"], "%"),
        ]
        if METHODS[run.cell.row] != "none":
            graphs = validated(run, data, checkpoint, "valid_graphs")
            found.append(Measurement("graphs_labeled_f1", graphs["labeled_f1"], "%"))
        return found


def write_corpora(run: Run, folder: Path) -> None:
    """Graphs and classes of the scale.  Raises ValueError, saying which, if files are not on disk."""
    if run.cell.scale == "smoke":
        write_made_up(folder, ("graphs",), classes=True)
        return
    if run.cell.scale == "paper":
        if run.source is None:
            raise ValueError("DM needs a licence (LDC2016T10): --from names a folder as the head of this script says")
        graphs = Corpus("graphs", {
            split: [graph_of_sdp(graph) for graph in read_sdp(run.source / f"dm.{name}.sdp")]
            for split, name in (("train", "train"), ("valid", "dev"))
        })  # fmt: skip
    else:
        graphs = stand_in_graphs(run)
    source = run.raw_data("text-classification")
    if source is None:
        raise ValueError("SST is not on disk: --from names a folder with stsa.binary.{train,dev,test}")
    classes = {split: sentences(source / f"stsa.binary.{name}")
               for split, name in (("train", "train"), ("valid", "dev"), ("test", "test"))}  # fmt: skip
    brown = run.raw_data("nltk")
    if brown is None:
        raise ValueError("the Brown corpus is not on disk: --from names a folder with nltk's brown.zip")
    tagger = Tagger(read_brown(brown / "brown.zip"))
    corpora = retagged({"graphs": graphs, "classes": Corpus("classes", classes)}, tagger)
    # a sentence of SST may be longer than those that graphs are learned from
    write_folder(corpora, folder, Options(max_length=60))


def sentences(path: Path) -> list[AnnotatedSentence]:
    """The classified sentences of a file.  Raises ValueError naming the file if it is not there."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    return read_classes(path)


recipe = GraphSentiment()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
