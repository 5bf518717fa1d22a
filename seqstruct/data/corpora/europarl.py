"""German-English of Stack Attention, section 8 and appendix G.1: a part of Europarl v7 to train on, news to evaluate.

Pairs are normalised by NFKC and kept where neither side has more than 150 characters; in training, pairs with an empty
side or one side more than 4 times as long as the other are dropped, and 100,000 of the rest are drawn.  Subwords are
SentencePiece's byte-pair encoding of both sides together, 32,000 types, those used fewer than 50 times taken back.
Validation is newstest2016, test newstest2017.

Choices where the source is silent: white space is normalised too; pairs with an empty side are dropped from
validation and test as well (there are none); the draw is made without replacement and keeps the order of the corpus.
"""

from __future__ import annotations

import argparse
import random
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from seqstruct.data import shards
from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.corpora import translation
from seqstruct.data.corpora.translation import Pair
from seqstruct.data.downloads import Remote, collect, raw_folder
from seqstruct.data.files import new_folder, write_json
from seqstruct.data.text import parallel
from seqstruct.data.text.aligned import read_pairs
from seqstruct.data.text.segments import news_archive, read_news
from seqstruct.data.text.subwords import normalize_spaces

LANGUAGES = ("de", "en")
CORPUS = "europarl-v7.de-en"
NEWS = {"valid": "newstest2016", "test": "newstest2017"}
MOST_CHARACTERS, MOST_RATIO = 150, 4
PAIRS, VALIDATE_EVERY = 100_000, 50_000
VOCABULARY, MIN_FREQUENCY = 32_000, 50
TEXT = Remote("https://www.statmt.org/europarl/v7/de-en.tgz")  # without a published checksum
WANTED = {
    **{f"{CORPUS}.{language}": [f"{CORPUS}.{language}"] for language in LANGUAGES},
    **{f"{name}.{language}": [f"{name}.{language}", f"{name}-deen-{kind}.{language}.sgm"]
       for name in NEWS.values() for language, kind in zip(LANGUAGES, ("src", "ref"), strict=True)},
}
MANUAL = "the archives are linked from https://www.statmt.org; name their folder by --from"


def normalize(line: str) -> str:
    """NFKC, with each run of white space as one space and none at the ends."""
    return normalize_spaces(unicodedata.normalize("NFKC", line))


def fits(pair: Pair) -> bool:
    """Whether both sides of a normalised pair have 1 to 150 characters."""
    return all(1 <= len(side) <= MOST_CHARACTERS for side in pair)


def balanced(pair: Pair) -> bool:
    """Whether neither side of a normalised pair has more than 4 times the characters of the other."""
    return max(map(len, pair)) <= MOST_RATIO * min(map(len, pair))


def draw(pairs: Iterable[Pair], count: int, seed: int) -> list[Pair]:
    """`count` normalised pairs of those that pass the limits, in the order of the corpus; all where there are fewer.

    By reservoir sampling, so that the corpus is read once; the seed decides which.
    """
    generator = random.Random(seed)
    kept: list[tuple[int, Pair]] = []
    seen = 0
    for pair in pairs:
        pair = normalize(pair[0]), normalize(pair[1])
        if not fits(pair) or not balanced(pair):
            continue
        seen += 1
        if len(kept) < count:
            kept.append((seen, pair))
        elif (place := generator.randrange(seen)) < count:
            kept[place] = seen, pair
    return [pair for _, pair in sorted(kept)]


def write_raw(files: Mapping[str, Path], out: Path, pairs: int, seed: int) -> None:
    """Write {train,valid,test}.{de,en} into a folder, from the files of `WANTED`.

    Raises ValueError if sides are of unlike length, or no pair of a split passes the limits.
    """
    training = read_pairs(files[f"{CORPUS}.de"], files[f"{CORPUS}.en"], empty=True)
    splits = {"train": draw(training, pairs, seed)}
    for split, name in NEWS.items():
        normalised = ((normalize(de), normalize(en)) for de, en in read_news(files, name, LANGUAGES))
        splits[split] = list(filter(fits, normalised))
    translation.write_raw(splits, LANGUAGES, out)


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_numbers(parser, {
        "--pairs": (PAIRS, "training pairs drawn"), "--seed": (1, "of the draw"),
        "--vocabulary": (VOCABULARY, "subword types before rare ones are taken back"),
        "--min-frequency": (MIN_FREQUENCY, "uses in training that a subword needs"),
    })


def run(args: argparse.Namespace) -> None:
    """Beside what `parallel.prepare` writes, bin/0, bin/1 ..., one for each 50,000 training pairs (see `shards`)."""
    at_least(args, pairs=1, vocabulary=1, min_frequency=1)
    with new_folder(args.out) as corpus:
        raw = corpus.parent / "raw"
        found = raw_folder(args, [TEXT, news_archive("wmt16"), news_archive("wmt17")], MANUAL)
        write_raw(collect(found, WANTED, corpus.parent / "unpacked", MANUAL), raw, args.pairs, args.seed)
        options = parallel.SubwordOptions(
            LANGUAGES, "sentencepiece-bpe", args.vocabulary, args.min_frequency, max_length=1000, max_ratio=1000.0
        )
        summary = parallel.prepare({split: raw / split for split in parallel.SPLITS}, options, corpus)
        summary |= {"seed": args.seed, "drawn": args.pairs, "normalization": "NFKC"}
        count = shards.shard_count(summary["counts"]["train"]["pairs"], VALIDATE_EVERY)
        shards.binarise(corpus / "text", corpus / "bin", count, LANGUAGES)
        write_json(corpus / "corpus.json", summary)
    for split, counts in summary["counts"].items():
        print(f"{split}: {counts['pairs']} pairs, {counts['subwords']} subwords")
