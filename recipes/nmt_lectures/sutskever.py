"""Sequence to sequence learning (Sutskever et al. 2014, tables 1 and 2): WMT'14 English to French, ntst14.

Four LSTM layers of size 1000, words (160,000 and 80,000 types), gradient descent from a rate of 0.7 that falls after
the fifth of 7.5 epochs, batches of 128, gradients clipped to 5.  Hypotheses are compared by log-probability alone.
Deviations: eight whole epochs, whose rate is quartered from the sixth on where the paper halves it twice an epoch; the
whole corpus that data-prep makes, not the selected 12 million pairs.  The rows that rescore another system's 1000-best
list are `seqstruct rescore` on that list, which is not public, and stand quoted.
"""

from __future__ import annotations

from published import PublishedTable, sgd
from systems import LENGTHS, Corpus, System

from seqstruct.harness.command import main

FORWARD, REVERSED = "Single forward LSTM, beam size 12", "Single reversed LSTM, beam size 12"
ENSEMBLES = {  # members and beam
    "Ensemble of 5 reversed LSTMs, beam size 1": (5, 1),
    "Ensemble of 2 reversed LSTMs, beam size 12": (2, 12),
    "Ensemble of 5 reversed LSTMs, beam size 2": (5, 2),
    "Ensemble of 5 reversed LSTMs, beam size 12": (5, 12),
}
CORPUS = Corpus("wmt14.sh --pair en-fr", ("en", "fr"), "words", "160000,80000")
TRAINING = sgd(5.0, 128, *[0.7] * 5, 0.25, 0.0625, 0.0156)
MODELS = {
    REVERSED: ("--arch", "rnn_sutskever"),
    FORWARD: (
        "--arch", "rnn_translation", "--cell", "lstm", "--cross-attention", "none", "--output", "plain", "--embed-dim",
        "1000", "--hidden-size", "1000", "--encoder-layers", "4", "--decoder-layers", "4", "--dropout", "0",
        "--initialization-bound", "0.08",
    ),
}  # fmt: skip


class Sutskever(PublishedTable):
    """BLEU of the single models and of their ensembles."""

    table = "sutskever"
    rows = (FORWARD, REVERSED, *ENSEMBLES)
    smoke_rows = ("Ensemble of 2 reversed LSTMs, beam size 12",)

    def published(self, row: str, seed: int) -> System:
        count, beam = ENSEMBLES.get(row, (0, 12))
        decode = ("--beam", str(beam), "--lenpen", "0", *LENGTHS)
        if count:
            members = tuple((REVERSED, member) for member in range(1, count + 1))
            return System(CORPUS, decode=decode, members=members)
        return System(CORPUS, (*MODELS[row], *TRAINING), epochs=8, decode=decode)


recipe = Sutskever()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
