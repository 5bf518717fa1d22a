"""Latent dependency trees, no tree ever given (Peng 2022, sections 2.2.3 and 2.5 name the use; there is no table):
sentiment of SST over the heads that a classifier chooses for its words, and tree transduction (Kim et al. 2017) with
hard parents in its encoder, each with every surrogate gradient.  For transduction eta is chosen on the validation loss,
the same ones tried for STE and SPIGOT; for sentiment it is that of table 2.2 (appendix C.1.2), not tuned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graph_sentiment import ACCURACY, sentences
from syntax_then_graph import COMMON, validated, write_made_up

from seqstruct.data.parsing.folder import Corpus, Options, write_folder
from seqstruct.harness.command import main
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.harness.search import try_settings

ETAS = {f"transduction {gradient}": (0.03, 0.1, 0.3, 1.0) for gradient in ("ste", "spigot")}  # tried, by row
GRADIENTS = ("pipeline", "ste", "spigot", "marginal")
TRANSDUCTION = load_recipe(Path(__file__).resolve().parents[1] / "structured_attention" / "tree_transduction.py")


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.  options: of fairseq-train for sentiment.  transduction: scale of that recipe's data."""

    epochs: int
    options: tuple[str, ...]
    transduction: str


_WORDS = ("--arch", "joint_parser_small", "--lemma-dim", "0", "--tag-dim", "0", "--word-dim", "64", "--lr", "0.002",
          "--batch-size", "32", "--step-size", "0.15625", "--intermediate", "tree")  # fmt: skip
SETTINGS = {
    "smoke": Setting(2, (*_WORDS, "--lstm-size", "16", "--mlp-size", "16"), "smoke"),
    "small": Setting(5, _WORDS, "small"),
    "paper": Setting(30, _WORDS, "paper"),
}


class LatentTrees(Recipe):
    """Accuracy on SST; mean share of the target before the first failure, over depths, for tree transduction."""

    paper = "peng_thesis"
    table = "latent-trees"
    family = "structured argmax"
    rows = tuple(f"{task} {gradient}" for task in ("SST", "transduction") for gradient in GRADIENTS)
    smoke_rows = ("SST spigot", "transduction spigot")
    licence = "SST: for research; formulas and the sentences of the smoke scale are made"
    progress_metric = "loss"

    def baselines(self, scale: str) -> Mapping[str, str]:
        formulas = {f"transduction {name}": "transduction marginal" for name in ("copy", "constant")}
        return {"SST majority": "SST marginal", **formulas}

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        tried = {"etas": ETAS[cell.row]} if cell.row in ETAS else {}
        return {**asdict(SETTINGS[cell.scale]), "common": COMMON, "row": cell.row, **tried}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        if cell.row.startswith("transduction"):
            of_formulas = TRANSDUCTION.dataset(Cell("Structured", cell.seed, setting.transduction))
            return f"{of_formulas}; here {setting.epochs} epochs"
        return f"SST binary sentences, learned word embeddings, {setting.epochs} epochs; no trees"

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate(minutes={"smoke": 0.3, "small": 4.0, "paper": 60.0}[cell.scale], disk=10.0)

    def prepare(self, run: Run) -> Path:
        if run.cell.row.startswith("transduction"):
            return TRANSDUCTION.prepare(self._as_transduction(run))
        if run.cell.scale == "smoke":
            return run.prepared("classes-made-up", lambda folder: write_made_up(folder, (), classes=True))
        return run.prepared("sentiment", lambda folder: write_sentiment(run, folder))

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        task, gradient = run.cell.row.split()
        if task == "SST":
            options = [*COMMON[:8], *ACCURACY, *setting.options, "--gradient", gradient]
            return run.fairseq_train(data, options, epochs=setting.epochs)
        searched = self.search(run, data)
        eta = min(searched, key=searched.__getitem__) if searched else 1.0
        return run.fairseq_train(data, transduction_options(run.cell, eta), epochs=setting.epochs)

    def search(self, run: Run, data: Path) -> dict[float, float]:
        """The validation loss with each eta that is tried for the row."""
        if run.cell.row not in ETAS:
            return {}
        settings = {f"eta {eta:g}": transduction_options(run.cell, eta) for eta in ETAS[run.cell.row]}
        epochs = SETTINGS[run.cell.scale].epochs
        found = try_settings(run, data, settings, epochs=epochs, metric="loss", best=min)
        return {eta: found[f"eta {eta:g}"] for eta in ETAS[run.cell.row]}

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        if run.cell.row.startswith("SST"):
            scores = {split: validated(run, data, checkpoint, split)["accuracy"] for split in ("valid", "test")}
            return [
                Measurement("validation_accuracy", scores["valid"], "%"),
                Measurement("test_accuracy", scores["test"], "%"),
            ]
        found = list(TRANSDUCTION.evaluate(self._as_transduction(run), data, checkpoint))
        if searched := self.search(run, data):
            eta = min(searched, key=searched.__getitem__)
            found.append(Measurement("chosen_eta", eta, "eta"))
            found.append(Measurement("search_loss", searched[eta], "bits a formula", "eta", list(searched.items())))
        return found

    def _as_transduction(self, run: Run) -> Run:
        """The same run, as the recipe of tree transduction asks for it: its row and scale, this folder."""
        scale = SETTINGS[run.cell.scale].transduction
        other = Run(TRANSDUCTION, Cell("Structured", run.cell.seed, scale), run.root.parent, progress=run.progress)
        other.root, other.folder = run.root, run.folder
        return other


def transduction_options(cell: Cell, eta: float) -> list[str]:
    """fairseq-train's, epochs apart."""
    transduction = Cell("Structured", cell.seed, SETTINGS[cell.scale].transduction)
    plan = f"dependency(hidden_size=50, root_token=True, gradient='{cell.row.split()[1]}', step_size={eta:g})"
    given = TRANSDUCTION.settings(transduction)["train_options"]
    return [*given, "--encoder-self-attention", plan, "--num-workers", "0"]


def write_sentiment(run: Run, folder: Path) -> None:
    """SST alone.  Raises ValueError if it is not on disk."""
    source = run.raw_data("text-classification")
    if source is None:
        raise ValueError("SST is not on disk: --from names a folder with stsa.binary.{train,dev,test}")
    classes = {split: sentences(source / f"stsa.binary.{name}")
               for split, name in (("train", "train"), ("valid", "dev"), ("test", "test"))}  # fmt: skip
    write_folder({"classes": Corpus("classes", classes)}, folder, Options(max_length=60))


recipe = LatentTrees()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
