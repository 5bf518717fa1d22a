"""The Kyoto Free Translation Task (Neubig 2011): Wikipedia's articles on Kyoto, Japanese and English, CC BY-SA 3.0.

    kftt            the text as it was before any tokenisation, data/orig of the archive
    kftt-tokenised  its words as the task cuts them, data/tok, for systems of words

440,288 pairs to train, 1,166 (dev) to validate and 1,160 to test; SentencePiece of both languages together, 8,000
pieces, as in Kudo and Richardson (2018, Table 2), unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from seqstruct.data.corpora import translation
from seqstruct.data.corpora.translation import Corpus, Pair, Variants, full
from seqstruct.data.downloads import Remote
from seqstruct.data.text.aligned import read_pairs
from seqstruct.data.text.parallel import SubwordOptions

NAMES = {"train": "kyoto-train", "valid": "kyoto-dev", "test": "kyoto-test"}


def read(files: Mapping[str, Path]) -> dict[str, Iterable[Pair]]:
    def pairs(name: str) -> Iterator[Pair]:
        return full(read_pairs(files[f"{name}.ja"], files[f"{name}.en"], empty=True))

    return {split: pairs(name) for split, name in NAMES.items()}


def _corpus(name: str, folder: str) -> Corpus:
    return Corpus(
        name,
        SubwordOptions(("ja", "en"), "sentencepiece", vocabulary=8000, max_length=500, max_ratio=1000.0),
        (Remote("https://www.phontron.com/kftt/download/kftt-data-1.0.tar.gz"),),
        {f"{name}.{language}": [f"{folder}/{name}.{language}"] for name in NAMES.values() for language in ("ja", "en")},
        read,
        {"train": 440288, "valid": 1166, "test": 1160},
        0.001,
        "the archive is linked from https://www.phontron.com/kftt/",
    )


VARIANTS = {
    "kftt": Variants(
        {"raw": _corpus("kftt", "orig"), "tokenised": _corpus("kftt-tokenised", "tok")}, "--text",
        "as it is, or in the words of the task",
    ),
}
add_arguments, run = translation.command(VARIANTS)
