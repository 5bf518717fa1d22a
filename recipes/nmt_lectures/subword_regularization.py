"""Subword regularization (Kudo 2018, table 4): ways to cut words, WMT'14 English to German, newstest2014.

GNMT (8 layers of size 1024) on words, characters, mixed words and characters (32,000 words), joint BPE of 32,000 types,
unigram pieces, and unigram pieces drawn anew in each epoch out of the 64 best segmentations with alpha 0.1.  Adam at a
rate of 0.0002, dropout 0.2, batches of 128, 10 epochs; beam 8 with length normalisation and coverage penalty; the model
sees the best segmentation when it translates.  Deviations: no change to gradient descent after Adam; the first three
rows are Wu et al.'s (2016) in the source, with vocabularies and models of their own.
"""

from __future__ import annotations

from published import GNMT_DECODE, GNMT_TRAINING, PublishedTable
from systems import Corpus, System

from seqstruct.harness.command import main

ROWS = {  # subwords, types, options of sampling
    "Word": ("words", "80000", ()),
    "Character (512 nodes)": ("characters", "1", ()),
    "Mixed Word/Character": ("mixed", "32000", ()),
    "BPE": ("bpe", "32000", ()),
    "Unigram w/o SR (l = 1)": ("sentencepiece", "32000", ()),
    "Unigram w/ SR (l = 64, alpha = 0.1)": (
        "sentencepiece", "32000", ("--sampling-nbest", "64", "--sampling-alpha", "0.1"),
    ),
}


class SubwordRegularization(PublishedTable):
    """BLEU of six ways to cut words."""

    table = "subword-regularization"
    rows = tuple(ROWS)
    smoke_rows = ("Unigram w/ SR (l = 64, alpha = 0.1)",)

    def published(self, row: str, seed: int) -> System:
        kind, size, sampled = ROWS[row]
        options = ("--arch", "rnn_gnmt", *GNMT_TRAINING)
        if kind == "characters":
            options += ("--embed-dim", "512", "--hidden-size", "512")
        return System(Corpus("wmt14.sh", ("en", "de"), kind, size), options, 10, sampled, decode=GNMT_DECODE)


recipe = SubwordRegularization()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
