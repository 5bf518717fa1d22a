"""A Transformer on Multi30k (Elliott et al. 2016), English to German, trained for one to two hours of one thread.

4 + 4 layers of size 128, inner size 256, 4 heads, pre-norm, all embeddings tied, dropout 0.3, label smoothing 0.1;
joint BPE of 10,000 types; Adam, batches of 4,096 tokens, 30 epochs in which the learning rate falls linearly to 0.  The
last five of the checkpoints kept each 120 updates (about an epoch) are averaged; beam 5, log-probability divided by
length.

Papers on multimodal translation report text-only systems as BLEU of lowercased tokens, 38 to 41 for test_2016_flickr;
the first metric is that, on Moses tokens of detokenised text, and SacreBLEU stands beside it with and without case.
An interrupted training goes on where it was, so it may be run in parts.  Scale paper has 50 epochs; scale smoke
takes a few hundred made-up pairs.
"""

from __future__ import annotations

from systems import Corpus, System, TranslationRecipe

from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate

ROW = "Transformer"
EPOCHS = {"smoke": 6, "small": 30, "paper": 50}


class LongTransformer(TranslationRecipe):
    """BLEU of lowercased tokens, SacreBLEU, chrF, sizes and speeds on test_2016_flickr."""

    table = "multi30k-long"
    family = "translation lineage"
    rows = (ROW,)
    seeds = {"smoke": 1, "small": 1, "paper": 5}
    max_minutes = {"smoke": 2.0, "small": 150.0, "paper": None}
    licence = "Multi30k: for research; made-up sentences at the smoke scale: none needed"

    def system(self, cell: Cell) -> System:
        smoke = cell.scale == "smoke"
        updates = {"smoke": 120, "small": 3720, "paper": 6200}[cell.scale]
        size, inner, batch = ("32", "64", "500") if smoke else ("128", "256", "4096")
        sizes = [
            word for side in ("encoder", "decoder") for word in (
                f"--{side}-embed-dim", size, f"--{side}-ffn-embed-dim", inner, f"--{side}-layers", "4",
            )
        ]  # fmt: skip
        options = (
            "--arch", "structured_transformer_small", *sizes, "--dropout", "0.1" if smoke else "0.3",
            "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--optimizer", "adam",
            "--adam-betas", "(0.9, 0.98)", "--lr", "0.005", "--clip-norm", "1", "--lr-scheduler", "polynomial_decay",
            "--warmup-updates", str(updates // 6), "--total-num-update", str(updates),
            "--max-tokens", batch, "--save-interval-updates", "10" if smoke else "120", "--keep-interval-updates", "5",
        )  # fmt: skip
        corpus = Corpus(vocabulary="150" if smoke else "10000")
        return System(corpus, options, EPOCHS[cell.scale], averaged=2 if smoke else 5, lowercase=True)

    def dataset(self, cell: Cell) -> str:
        if cell.scale == "smoke":
            return "400 made-up sentence pairs, joint BPE of 150 types"
        text = f"joint BPE of 10000 types, at most {EPOCHS[cell.scale]} epochs"
        return f"Multi30k en-de task 1, 29000 pairs, test_2016_flickr, {text}"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.5, "small": 100.0, "paper": 170.0}[cell.scale]
        return Estimate(minutes, 5.0 if cell.scale == "smoke" else 450.0, 0.0 if cell.scale == "smoke" else 1.3)


recipe = LongTransformer()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
