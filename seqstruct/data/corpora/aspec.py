"""ASPEC-JE (Nakazawa et al. 2016) from its distributed files to aligned text.

A line of train/train-N.txt has five fields between "|||": similarity, document, sentence, Japanese, English; a line of
dev/dev.txt and test/test.txt has four, without the similarity.  Text is cut and binarised as `word_pairs` does, of at
most 50 characters of Japanese, whatever its units, and 50 words of English (Kim et al. 2017, section 4.2): systems of
characters and of words have the same pairs.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from seqstruct.data.arguments import add_numbers
from seqstruct.data.checked import check_counts
from seqstruct.data.downloads import raw_folder
from seqstruct.data.files import new_folder
from seqstruct.data.text import word_pairs
from seqstruct.data.text.aligned import pair_writer, read_lines
from seqstruct.data.text.subwords import normalize_spaces

LANGUAGES = ("ja", "en")
FILES = {
    "train": [f"train/train-{number}.txt" for number in (1, 2, 3)],
    "valid": ["dev/dev.txt"],
    "test": ["test/test.txt"],
}
MANUAL = (
    "apply for the corpus, with your name and affiliation, at https://jipsti.jst.go.jp/aspec/, accept its licence for "
    "research, unpack ASPEC.tar.gz and name the folder ASPEC-JE"
)
LINES = {"train": 3_008_500, "valid": 1790, "test": 1812}
FIELDS = {"train": 5, "valid": 4, "test": 4}
LONGEST = 50  # characters of Japanese, words of English


def extract(folder: str | os.PathLike, out: str | os.PathLike, checked: bool = False) -> dict[str, int]:
    """Write `SPLIT.ja` and `SPLIT.en` for train, valid and test into `out`; the number of pairs by split comes back.

    folder: the corpus, as its archive unpacks.  Pairs with an empty side or too much Japanese are left out.  checked:
    whether there must be as many lines as published.
    Raises ValueError if a file is missing, a line has another number of fields, or a split is empty.
    """
    folder, counts, lines = Path(folder), {}, dict.fromkeys(FILES, 0)
    missing = [name for names in FILES.values() for name in names if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"{folder}: no ASPEC-JE: {missing[0]} is missing ({len(missing)} of 5 files)")
    for split, names in FILES.items():
        counts[split] = 0
        with pair_writer(Path(out, split), LANGUAGES) as write:
            for name in names:
                for number, line in enumerate(read_lines(folder / name), 1):
                    lines[split] += 1
                    fields = [field.strip() for field in line.split("|||")]
                    if len(fields) != FIELDS[split]:
                        raise ValueError(
                            f"{folder / name}: line {number}: expected {FIELDS[split]} fields between '|||', "
                            f"found {len(fields)}"
                        )
                    if all(fields[-2:]) and len(normalize_spaces(fields[-2])) <= LONGEST:
                        counts[split] += 1
                        write((fields[-2], fields[-1]))
        if not counts[split]:
            raise ValueError(f"{folder}: no pair of at most {LONGEST} letters of Japanese in {', '.join(names)}")
    if checked:
        check_counts("aspec", lines, LINES, "lines")
    return counts


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--units", choices=("characters", "kytea", "mecab"), default="characters",
                        help="of Japanese; the programs KyTea and MeCab are yours to install (default %(default)s)")
    add_numbers(parser, {
        "--sample": (500_000, "training pairs drawn at random of those that fit, 0: all"),
        "--threshold": (10, "occurrences in training that a token needs"), "--workers": (1, "processes that binarise"),
    })


def run(args: argparse.Namespace) -> None:
    source = raw_folder(args, manual=MANUAL)
    options = word_pairs.WordPairOptions(
        LANGUAGES, (args.units, "moses"), max_source=LONGEST, max_target=LONGEST, sample=args.sample,
        threshold=args.threshold,
    )
    with new_folder(args.out) as folder:
        pairs = folder.parent / "pairs"
        extract(source, pairs, not args.unchecked)
        summary = word_pairs.prepare({split: pairs / split for split in FILES}, options, folder, args.workers)
    print(", ".join(f"{split}: {counts['pairs']} pairs" for split, counts in summary["counts"].items()))
