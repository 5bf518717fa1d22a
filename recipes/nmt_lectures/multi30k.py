"""The models of the lectures on Multi30k (Elliott et al. 2016), English to German, test_2016_flickr.

Recurrent rows are presets of `rnn_translation`, ConvS2S is fairseq's `fconv`, Transformers are
`structured_transformer`; "linear attention" is in the self-attention of both sides.  Scale paper keeps the published
sizes, which are for corpora a hundred times as large.  Scale small has layers of size 128 (recurrent models two where
the paper has four, four where it has eight; ConvS2S 4 + 3, the Transformer 3 + 3) and five epochs, ten minutes of one
thread, too little for any of them.  Scale smoke takes a few hundred made-up sentence pairs, which prove nothing.
Subwords are joint: BPE of subword-nmt, unigram pieces of SentencePiece, or as a row's name says ("words" know the most
frequent ones and <unk>); "sampled" rows train on segmentations drawn anew in each epoch (subword regularization, Kudo
2018; BPE dropout, Provilkov et al. 2020); characters train for two epochs.  Beam 5; hypotheses are
compared by log-probability divided by length, and the other GNMT rows decode that row's model in other ways.

A run with attention leaves attention.png, the weights of one test sentence and its reference; that of grConv
soft_tree.png, its encoder's tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lineage import MODELS, epochs, train_options, vocabulary
from systems import Corpus, System, TranslationRecipe

from seqstruct.data.aligned import read_lines
from seqstruct.harness import plot
from seqstruct.harness.command import main
from seqstruct.harness.plot_tree import soft_tree, soft_tree_gates
from seqstruct.harness.recipe import Cell, Estimate, Measurement
from seqstruct.harness.run import Run


class Lineage(TranslationRecipe):
    """BLEU, chrF, sizes and speeds on test_2016_flickr, perplexity on the validation set."""

    table = "multi30k"
    family = "translation lineage"
    rows = tuple(MODELS)
    smoke_rows = ("RNNsearch", "Transformer, unigram sampled")
    seeds = {"smoke": 1, "small": 1, "paper": 1}
    licence = "Multi30k: for research; made-up sentences at the smoke scale: none needed"

    def system(self, cell: Cell) -> System:
        model = MODELS[cell.row]
        corpus = Corpus(subwords=model.subwords, vocabulary=vocabulary(cell))
        if model.members:
            members = tuple((row, seed or cell.seed) for row, seed in model.members)
            return System(corpus, decode=model.decode, members=members)
        return System(corpus, tuple(train_options(cell)), epochs(cell), model.sampled, decode=model.decode)

    def dataset(self, cell: Cell) -> str:
        kind = MODELS[cell.row].subwords
        joint = "" if "," in kind else "joint "
        sizes = vocabulary(cell).replace(",", " and ")
        text = f"{joint}{kind.replace(',', ' to ')} of {sizes} types, {epochs(cell)} epochs"
        if cell.scale == "smoke":
            return f"400 made-up sentence pairs, {text}"
        return f"Multi30k en-de task 1, 29000 pairs, test_2016_flickr, {text}"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.4, "small": 8.0, "paper": 900.0}[cell.scale]
        slower = 1.5 if cell.row in ("GNMT", "grConv") else 1.0
        model = MODELS[cell.row]
        times = max(1, len(model.members))
        download = 0.0 if cell.scale == "smoke" else 1.3
        return Estimate(minutes * slower * times, {"smoke": 2.0, "small": 60.0, "paper": 2000.0}[cell.scale], download)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        found = super().evaluate(run, data, checkpoint)
        model = MODELS[run.cell.row]
        source, target = (next(iter(read_lines(data / "text" / f"test.{side}"))) for side in ("en", "de"))
        if run.cell.row == "grConv":
            words, gates = soft_tree_gates(checkpoint, source, data=data / "bin")
            plot.save(soft_tree(words, gates, run.cell.row), run.folder / "soft_tree.png")
        elif model.preset.startswith("rnn") or model.preset == "structured_transformer":
            views = plot.layer_views(checkpoint, source, target=target, data=data / "bin")
            if views:
                plot.save(plot.attention(views, run.cell.row), run.folder / "attention.png")
        return found


recipe = Lineage()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
