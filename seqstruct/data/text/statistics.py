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

from seqstruct.data.arguments import at_least
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
        at_least(self, vocabulary=1, joint_vocabulary=1, shortlist=1)


class NotInstalled(ValueError):
    """A segmentation needs patterns or a text that are not there."""


@dataclass(frozen=True)
class CutLine:
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


def _stretches(size: int, word: str) -> list[str]:
    """Stretches of `size` characters, the last of a word perhaps shorter."""
    return [word[i : i + size] for i in range(0, len(word), size)]


def _bigrams_with_shortlist(train: Counter[str], other: Counter[str] | None, options: CutOptions) -> Segmenter:
    """Character bigrams, but the most frequent words whole; of equally frequent ones the first in the alphabet."""
    frequent = {word for word, _ in sorted(train.items(), key=lambda item: (-item[1], item[0]))[: options.shortlist]}
    return lambda word: [word] if word in frequent else _stretches(2, word)


def morfessor(train: Counter[str], other: Counter[str] | None, options: CutOptions) -> Segmenter:
    """Morfessor Baseline (Creutz and Lagus 2002) by the package of that name, trained on the types of words."""
    import morfessor as package

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
    import pyphen

    found = pyphen.language_fallback(options.language)
    if found is None:
        raise NotInstalled(f"pyphen has no patterns for the language {options.language}")
    patterns = pyphen.Pyphen(lang=found)

    def cut(word: str) -> list[str]:
        places = [0, *patterns.positions(word), len(word)]
        return [word[start:end] for start, end in zip(places, places[1:], strict=False)]

    return cut


def _byte_pair_encoding(counts: Counter[str], vocabulary: int) -> Segmenter:
    """Learned from lines whose words occur as often as they are counted."""
    with TemporaryDirectory() as folder:
        codes = Path(folder, "codes.bpe")
        subwords.learn_bpe((" ".join([word] * count) for word, count in counts.items()), codes, vocabulary)
        apply = subwords.load_bpe(codes)
    return lambda word: [piece.removesuffix(subwords.BPE_MARKER) for piece in apply(word).split()]


def _joint(train: Counter[str], other: Counter[str] | None, options: CutOptions) -> Segmenter:
    if other is None:
        raise NotInstalled("the other language's text was not given")
    return _byte_pair_encoding(train + other, options.joint_vocabulary)


# In the order of the table; from the counts of words in the training text and in the other language's, if there is one.
SEGMENTATIONS: Mapping[str, Callable[[Counter[str], Counter[str] | None, CutOptions], Segmenter]] = {
    "none": lambda train, other, options: lambda word: [word],
    "characters": lambda train, other, options: partial(_stretches, 1),
    "character bigrams": lambda train, other, options: partial(_stretches, 2),
    "character trigrams": lambda train, other, options: partial(_stretches, 3),
    "compound splitting": lambda train, other, options: CompoundSplitter(train),
    "morfessor": morfessor,
    "hyphenation": hyphenation,
    "BPE": lambda train, other, options: _byte_pair_encoding(train, options.vocabulary),
    "BPE (joint)": _joint,
    "character bigrams (shortlist)": _bigrams_with_shortlist,
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
    except ImportError as error:
        return CutLine(segmentation, missing=f"{error.name} is not installed: pip install {error.name}")
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
