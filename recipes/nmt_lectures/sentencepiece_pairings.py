"""SentencePiece (Kudo and Richardson 2018, table 1): the Kyoto Free Translation Task, both directions.

GNMT with 6 layers of size 512 and five ways to cut source and target.  "SentencePiece" sees raw text; the other rows
take text cut into words: --from is then what data-prep/parallel.sh makes of data/tok of the task's archive, where
Japanese is cut by KyTea (their SentencePiece side is learnt on it too).  Adam at a rate of 0.0002, dropout 0.2, batches
of 128, 20 epochs; beam search with length normalisation and coverage penalty.  Deviations: no change to gradient
descent after Adam, joint dictionaries where one model cuts both sides; the scores are on Moses tokens, where the paper
segments Japanese output by KyTea, so that en-ja is not comparable.
"""

from __future__ import annotations

from published import GNMT_DECODE, GNMT_TRAINING, PublishedTable
from systems import Corpus, System

from seqstruct.harness.command import main

SETTINGS = {  # subwords and types of source and target, or of both
    "Word model (baseline)": ("words", "80000,80000"),
    "SentencePiece": ("sentencepiece", "8000"),
    "SentencePiece w/ pre-tok.": ("sentencepiece", "8000"),
    "Word/SentencePiece": ("words,sentencepiece", "80000,8000"),
    "SentencePiece/Word": ("sentencepiece,words", "8000,80000"),
}
OPTIONS = (
    "--arch", "rnn_gnmt", "--embed-dim", "512", "--hidden-size", "512", "--encoder-layers", "6", "--decoder-layers",
    "6", *GNMT_TRAINING,
)  # fmt: skip


class SentencePiece(PublishedTable):
    """BLEU of five settings in two directions."""

    table = "sentencepiece"
    rows = tuple(f"{direction} {setting}" for direction in ("ja-en", "en-ja") for setting in SETTINGS)
    smoke_rows = ("ja-en SentencePiece",)

    def published(self, row: str, seed: int) -> System:
        direction, _, setting = row.partition(" ")
        kinds, sizes = SETTINGS[setting]
        script = "kftt.sh" if setting == "SentencePiece" else "parallel.sh"
        corpus = Corpus(script, (direction[:2], direction[3:]), kinds, sizes)
        return System(corpus, OPTIONS, epochs=20, decode=GNMT_DECODE)


recipe = SentencePiece()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
