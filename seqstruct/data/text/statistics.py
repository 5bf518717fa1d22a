"""How a segmentation of words changes a text: tokens, types, unknown tokens (Sennrich et al. 2016, sec. 5.1, table 1).

Words are what spaces separate.  A segment that does not end its word is another type than one that does, as subword-nmt
marks it.  tokens, types: of the training text; unknown: tokens of the test text whose type the training text lacks, for
byte-pair encoding too, where a character may be unknown.  Bigrams and trigrams are cut from a word's beginning and do
not overlap.  Everything is computed on counts of words, so a text of any length costs as much as its vocabulary.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from seqstruct.data.text import subwords
from seqstruct.data.text.compounds import CompoundSplitter

Segmenter = Callable[[str], list[str]]


@dataclass(frozen=True)
class CutOptions:
    """What the segmentations need.

    language: two-letter code, for hyphenation.  vocabulary, joint_vocabulary: subword types that byte-pair encoding of
    one language and of both aims at.  shortlist: most frequent words that character bigrams leave whole.
    """

    language: str
    vocabulary: int = 6000
    joint_vocabulary: int = 9000
    shortlist: int = 5000

    def __post_init__(self) -> None:
        for name in ("vocabulary", "joint_vocabulary", "shortlist"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected 1 or more, got {getattr(self, name)}")


class NotInstalled(ValueError):
    """A segmentation needs a package that is not there."""


@dataclass(frozen=True)
class CutLine:
    """One segmentation: its numbers, or why there are none."""

    segmentation: str
    tokens: int = 0
    types: int = 0
    unknown: int = 0
    missing: str = ""


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word occurs, words being separated by spaces."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def words(train: Counter[str], other: Counter[str] | None, options: CutOptions) -> Segmenter:
    """Each word as it is."""
    return lambda word: [word]


def character_ngrams(train: Counter[str], other: Counter[str] | None, options: CutOptions, size: int) -> Segmenter:
    """Stretches of `size` characters, the last of a word perhaps shorter."""
    return lambda word: [word[i : i + size] for i in range(0, len(word), size)]


def bigrams_with_shortlist(train: Counter[str], other: Counter[str] | None, options: CutOptions) -> Segmenter:
    """Character bigrams, but the most frequent words whole; of equally frequent ones the first in the alphabet."""
    frequent = {word for word, _ in sorted(train.items(), key=lambda item: (-item[1], item[0]))[: options.shortlist]}
    cut = character_ngrams(train, other, options, 2)
    return lambda word: [word] if word in frequent else cut(word)


def compounds(train: Counter[str], other: Counter[str] | None, options: CutOptions) -> Segmenter:
    """Compound splitting by frequency."""
    return CompoundSplitter(train)


def morfessor(train: Counter[str], other: Counter[str] | None, options: CutOptions) -> Segmenter:
    """Morfessor Baseline (Creutz and Lagus 2002) by the package of that name, trained on the types of words."""
    try:
        import morfessor as package
    except ImportError:
        raise NotInstalled("morfessor is not installed: pip install morfessor") from None
    package.utils.show_progress_bar = False
    model = package.BaselineModel()
    model.load_data([(1, word) for word in sorted(train)])
    # the package shuffles by the state of the process: it is lent a seed, so that a text has one segmentation
    state = random.getstate()
    try:
        random.seed(1)
        model.train_batch()
    finally:
        random.setstate(state)
    return lambda word: list(model.viterbi_segment(word)[0])


def hyphenation(train: Counter[str], other: Counter[str] | None, options: CutOptions) -> Segmenter:
    """The hyphenation patterns of the language (Liang 1983), by pyphen."""
    try:
        import pyphen
    except ImportError:
        raise NotInstalled("pyphen is not installed: pip install pyphen") from None
    found = pyphen.language_fallback(options.language)
    if found is None:
        raise NotInstalled(f"pyphen has no patterns for the language {options.language}")
    patterns = pyphen.Pyphen(lang=found)

    def cut(word: str) -> list[str]:
        places = [0, *patterns.positions(word), len(word)]
        return [word[start:end] for start, end in zip(places, places[1:], strict=False)]

    return cut


def _byte_pair_encoding(lines: Iterable[str], vocabulary: int) -> Segmenter:
    with TemporaryDirectory() as folder:
        codes = Path(folder, "codes.bpe")
        subwords.learn_bpe(lines, codes, vocabulary)
        apply = subwords.load_bpe(codes)
    return lambda word: [piece.removesuffix(subwords.BPE_MARKER) for piece in apply(word).split()]


def _spelled_out(counts: Counter[str]) -> Iterable[str]:
    """Lines whose words occur as often as they are counted."""
    return (" ".join([word] * count) for word, count in counts.items())


def bpe(train: Counter[str], other: Counter[str] | None, options: CutOptions) -> Segmenter:
    """Byte-pair encoding learned on this language alone."""
    return _byte_pair_encoding(_spelled_out(train), options.vocabulary)


def joint_bpe(train: Counter[str], other: Counter[str] | None, options: CutOptions) -> Segmenter:
    """Byte-pair encoding learned on both languages together.  Raises NotInstalled where the other text is not given."""
    if other is None:
        raise NotInstalled("the other language's text was not given")
    return _byte_pair_encoding(_spelled_out(train + other), options.joint_vocabulary)


# In the order of the table.
SEGMENTATIONS: Mapping[str, Callable[[Counter[str], Counter[str] | None, CutOptions], Segmenter]] = {
    "none": words,
    "characters": partial(character_ngrams, size=1),
    "character bigrams": partial(character_ngrams, size=2),
    "character trigrams": partial(character_ngrams, size=3),
    "compound splitting": compounds,
    "morfessor": morfessor,
    "hyphenation": hyphenation,
    "BPE": bpe,
    "BPE (joint)": joint_bpe,
    "character bigrams (shortlist)": bigrams_with_shortlist,
}


def line_of(
    segmentation: str, train: Counter[str], test: Counter[str], other: Counter[str] | None, options: CutOptions
) -> CutLine:
    """One line of the table; where a package or text is missing, the line that says so.

    train, test: counts of words.  other: of the other language's training text, for joint byte-pair encoding.
    Raises ValueError if there is no such segmentation, or if the text is too small for it.
    """
    if segmentation not in SEGMENTATIONS:
        raise ValueError(f"segmentation: expected one of {', '.join(SEGMENTATIONS)}, got {segmentation!r}")
    try:
        cut = SEGMENTATIONS[segmentation](train, other, options)
    except NotInstalled as error:
        return CutLine(segmentation, missing=str(error))

    def segments(word: str) -> list[tuple[str, bool]]:
        found = cut(word)
        return [(segment, i + 1 == len(found)) for i, segment in enumerate(found)]

    tokens, types = 0, set()
    for word, count in train.items():
        found = segments(word)
        tokens += count * len(found)
        types.update(found)
    unknown = sum(count * sum(segment not in types for segment in segments(word)) for word, count in test.items())
    return CutLine(segmentation, tokens, len(types), unknown)
