"""Convolutional sequence to sequence learning (Gehring et al. 2017, tables 1 and 2), with fairseq's own `fconv`.

Joint BPE of 40,000 types; Nesterov's gradient with momentum 0.99, rate 0.25, gradients clipped to 0.1, the rate divided
by ten after each epoch without improvement until it is below 1e-4; batches of 4,000 tokens; beam 5.  Deviation: one
process with --update-freq 8 stands for the eight GPUs of the two larger corpora.
"""

from __future__ import annotations

from published import PublishedTable
from systems import Corpus, System

from seqstruct.harness.command import main

ROWS = {  # architecture, corpus, dropout, batches added up
    "WMT'16 en-ro ConvS2S (BPE 40K)": ("fconv_wmt_en_ro", Corpus("wmt16.sh", ("en", "ro"), "bpe", "40000"), "0.2", "1"),
    "WMT'14 en-de ConvS2S (BPE 40K)": ("fconv_wmt_en_de", Corpus("wmt14.sh", ("en", "de"), "bpe", "40000"), "0.2", "8"),
    "WMT'14 en-fr ConvS2S (BPE 40K)": (
        "fconv_wmt_en_fr", Corpus("wmt14.sh --pair en-fr", ("en", "fr"), "bpe", "40000"), "0.1", "8",
    ),
}  # fmt: skip


class ConvS2S(PublishedTable):
    """BLEU on three corpora."""

    table = "convs2s"
    rows = tuple(ROWS)
    smoke_rows = ("WMT'14 en-de ConvS2S (BPE 40K)",)

    def published(self, row: str, seed: int) -> System:
        arch, corpus, dropout, summed = ROWS[row]
        options = (
            "--arch", arch, "--dropout", dropout, "--criterion", "label_smoothed_cross_entropy", "--label-smoothing",
            "0", "--optimizer", "nag", "--momentum", "0.99", "--lr", "0.25", "--clip-norm", "0.1", "--lr-scheduler",
            "reduce_lr_on_plateau", "--lr-shrink", "0.1", "--stop-min-lr", "1e-4", "--max-tokens", "4000",
            "--update-freq", summed,
        )  # fmt: skip
        return System(corpus, options, epochs=100)


recipe = ConvS2S()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
