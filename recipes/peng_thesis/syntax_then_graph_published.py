"""Table 2.1 (Peng 2022): syntactic-then-semantic parsing on DM and PSD of SDP 2015, in domain and on Brown.

The corpora need licences (LDC2016T10 for the graphs, LDC99T42 for the trees): --from names the folder that
data-prep/sdp2015.sh makes of them, {dm,psd,pas}.{train,dev,id,ood}.sdp and ptb.{train,dev}.conllu, the trees with
sections 20 and 21 left out of training.
Tags and lemmas are those of the files, where the source predicts them with NLTK.  Without the corpora, the
smoke scale runs the same code on made-up sentences; syntax_then_graph.py has free stand-ins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from syntax_then_graph import COMMON, SETTINGS, SyntaxThenGraph, method_options, validated, write_made_up

from seqstruct.data.conllu import read_conllu
from seqstruct.data.parsing.folder import Corpus, write_folder
from seqstruct.data.parsing.sentence import graph_of_sdp, tree_of
from seqstruct.data.sdp import read_sdp
from seqstruct.harness.baselines import measure, name_of
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Measurement
from seqstruct.harness.run import Run

ROWS = ("NEURBOPARSER", "FREDA3", "PIPELINE", "SA", "STE", "SPIGOT")


class Published(SyntaxThenGraph):
    """Table 2.1 with the corpora of the source; rows are "FORMALISM METHOD"; FREDA3 learns three formalisms at once."""

    table = "2.1"
    rows = tuple(f"{formalism} {method}" for formalism in ("DM", "PSD") for method in ROWS)
    smoke_rows = ("DM FREDA3",)
    licence = "LDC2016T10 (SDP 2015) and LDC99T42 (Penn Treebank)"

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {f"{formalism} {name}": f"{formalism} PIPELINE"
                for formalism in ("DM", "PSD") for name in ("previous word", "next word")}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        found = measure(name_of(row), data, splits={"test": "in_domain", "ood": "out_of_domain"})
        return [m for m in found if "domain" in m.metric]

    def method(self, cell: Cell) -> str:
        return {"NEURBOPARSER": "no syntax", "FREDA3": "no syntax"}.get(cell.row.split()[1], cell.row.split()[1])

    def dataset(self, cell: Cell) -> str:
        if cell.scale == "smoke":
            return super().dataset(cell)
        return "SDP 2015, sections 00 to 19; Stanford dependencies of the Penn Treebank, sections 20 and 21 left out"

    def prepare(self, run: Run) -> Path:
        if run.cell.scale == "smoke":
            return run.prepared("parsing-made-up-sdp", lambda folder: write_made_up(folder, ("dm", "psd", "pas")))
        formalism, method = run.cell.row.split()
        if run.source is None:
            raise ValueError(f"{self.licence} are not free: --from names a folder as the head of this script says")
        formalisms = ("dm", "psd", "pas") if method == "FREDA3" else (formalism.lower(),)
        return run.prepared("sdp-" + "-".join(formalisms), lambda folder: write_published(run, folder, formalisms))

    def train(self, run: Run, data: Path) -> Path:
        formalism, method = run.cell.row.split()
        setting = SETTINGS["smoke" if run.cell.scale == "smoke" else "paper"]
        options = [*COMMON, *setting.options, *method_options(self.method(run.cell))]
        if method == "FREDA3":
            options += ["--shared-encoder"]
        if self.method(run.cell) == "no syntax":
            options += ["--corpora", "dm,psd,pas" if method == "FREDA3" else formalism.lower()]
        return run.fairseq_train(data, options, epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        formalism = run.cell.row.split()[0].lower()
        valid = validated(run, data, checkpoint, f"valid_{formalism}")
        found = [Measurement("validation_labeled_f1", valid["labeled_f1"], "%")]
        for domain, split in (("in_domain", "test"), ("out_of_domain", "ood")):
            scores = validated(run, data, checkpoint, f"{split}_{formalism}")
            found += [Measurement(f"{domain}_{m}", scores[m], "%") for m in ("labeled_f1", "unlabeled_f1")]
        if self.method(run.cell) in ("STE", "SPIGOT"):
            found += self._changes(run, data, checkpoint)
        return found


def write_published(run: Run, folder: Path, formalisms: Sequence[str]) -> None:
    """SDP graphs and PTB trees from the folder given."""
    source = run.source or Path()
    trees = {
        split: [tree_of(sentence, "xpos") for sentence in read_conllu(source / f"ptb.{name}.conllu")]
        for split, name in (("train", "train"), ("valid", "dev"))
    }
    corpora = {"trees": Corpus("trees", trees)}
    for formalism in formalisms:
        splits = {
            split: [graph_of_sdp(graph) for graph in read_sdp(source / f"{formalism}.{name}.sdp")]
            for split, name in (("train", "train"), ("valid", "dev"), ("test", "id"), ("ood", "ood"))
        }
        corpora[formalism] = Corpus("graphs", splits)
    write_folder(corpora, folder)


recipe = Published()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
