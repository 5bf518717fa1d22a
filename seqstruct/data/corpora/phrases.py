"""Phrase pairs of a Moses phrase table of your own, to train a model that scores them (Cho et al. 2014, section 3.1).

--from names a folder with phrase-table or phrase-table.gz: "source ||| target ||| scores ..." a line, English and
French in the paper.  One pair of so many validates; each pair counts once, whatever its frequency.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.downloads import collect, raw_folder
from seqstruct.data.files import new_folder
from seqstruct.data.text.aligned import pair_writer, read_lines
from seqstruct.data.text.binarise import preprocess_pairs

LANGUAGES = ("en", "fr")
MANUAL = "name a folder with the phrase-table or phrase-table.gz that Moses makes"


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_numbers(parser, {"--every": (1000, "one pair of so many validates"),
                         "--vocabulary": (15000, "entries of each language's dictionary: its most frequent words, and "
                                          "the four special symbols")})


def read_phrases(table: Path) -> Iterator[tuple[str, str]]:
    """Source and target of the lines that have both."""
    for line in read_lines(table):
        fields = [field.strip() for field in line.split("|||")]
        if len(fields) >= 3 and fields[0] and fields[1]:
            yield fields[0], fields[1]


def run(args: argparse.Namespace) -> None:
    at_least(args, command=True, every=1, vocabulary=1)
    raw = raw_folder(args, manual=MANUAL)
    counts = {"train": 0, "valid": 0, "test": 0}
    with new_folder(args.out) as folder:
        table = collect(raw, {"table": ["phrase-table"]}, folder.parent / "unpacked", MANUAL)["table"]
        with ExitStack() as stack:
            write = {split: stack.enter_context(pair_writer(folder / "text" / split, LANGUAGES)) for split in counts}
            for number, pair in enumerate(read_phrases(table), 1):
                # fairseq-preprocess asks for a test set: the validation pairs once more
                for split in ("valid", "test") if number % args.every == 0 else ("train",):
                    counts[split] += 1
                    write[split](pair)
        if not (counts["train"] and counts["valid"]):
            raise ValueError(f"{table}: {counts['train']} pairs to train on and {counts['valid']} to validate; --every "
                             f"is {args.every}")
        limits = ("--nwordssrc", str(args.vocabulary), "--nwordstgt", str(args.vocabulary))
        preprocess_pairs(folder / "text", folder / "bin", LANGUAGES, joined=False, arguments=limits)
    print(f"train: {counts['train']} phrase pairs, valid: {counts['valid']}")
