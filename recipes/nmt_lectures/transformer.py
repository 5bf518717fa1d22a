"""Attention is all you need (Vaswani et al. 2017, table 2): WMT'14 English to German and to French, newstest2014.

Joint BPE of 37,000 types (32,000 for French); Adam with the paper's schedule, label smoothing 0.1, some 25,000 tokens a
side in a batch; the base model trains for 100,000 updates, the big one for 300,000; the last 5 or 20 of the checkpoints
kept each 1,500 updates (about ten minutes of the paper's machine) are averaged; beam 4, length penalty 0.6.  Deviation:
pre-norm is off as in the paper, but fairseq scales sums of embeddings and positions as its own models do.
"""

from __future__ import annotations

from published import PublishedTable
from systems import LENGTHS, Corpus, System

from seqstruct.harness.command import main

CORPORA = {
    "EN-DE": Corpus("wmt14.sh", ("en", "de"), "bpe", "37000"),
    "EN-FR": Corpus("wmt14.sh --pair en-fr", ("en", "fr"), "bpe", "32000"),
}
BIG = tuple(
    word for side in ("encoder", "decoder") for word in (
        f"--{side}-embed-dim", "1024", f"--{side}-ffn-embed-dim", "4096", f"--{side}-attention-heads", "16",
    )
)  # fmt: skip


class Transformer(PublishedTable):
    """BLEU of the base and the big model."""

    table = "transformer"
    rows = tuple(f"{pair} Transformer ({size})" for pair in CORPORA for size in ("base model", "big"))
    smoke_rows = ("EN-DE Transformer (base model)",)

    def published(self, row: str, seed: int) -> System:
        pair, big = row[:5], row.endswith("(big)")
        dropout = "0.3" if big and pair == "EN-DE" else "0.1"
        size = 1024 if big else 512
        options = (
            "--arch", "structured_transformer", "--share-all-embeddings", *(BIG if big else ()), "--dropout", dropout,
            "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--optimizer", "adam",
            "--adam-betas", "(0.9, 0.98)", "--adam-eps", "1e-9", "--lr", f"{(size * 4000) ** -0.5:.6g}",
            "--lr-scheduler", "inverse_sqrt", "--warmup-updates", "4000", "--max-tokens", "4096", "--update-freq", "6",
            "--max-update", "300000" if big else "100000", "--save-interval-updates", "1500",
            "--keep-interval-updates", "20" if big else "5",
        )  # fmt: skip
        decode = ("--beam", "4", "--lenpen", "0.6", *LENGTHS)
        return System(CORPORA[pair], options, epochs=1000, averaged=20 if big else 5, decode=decode)


recipe = Transformer()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
