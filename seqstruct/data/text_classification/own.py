"""Labelled text of your own, for the task text_classification.

A file has a label, a tab and a text on each line; or two files have the labels and the texts, line by line:
    --train train.tsv            --train train.labels train.txt
With --pairs a second text follows after another tab, or in a third file, and labels are of the two.
"""

from __future__ import annotations

import argparse
from collections import Counter

from seqstruct.data import own
from seqstruct.data.text_classification.folder import Labelled, add_dictionary_arguments, write_texts


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    own.add_arguments(parser, "FILE", "a label, a tab and a text a line; or two files, labels and texts", "+")
    parser.add_argument("--pairs", action="store_true", help="two texts a line, a tab between them, or in two files")
    own.add_word_arguments(parser)
    add_dictionary_arguments(parser)


def run(args: argparse.Namespace) -> None:
    cut = own.cutter(args)
    columns = ("a label", "a first text", "a second text") if args.pairs else ("a label", "a text")
    last = "two texts with a tab between them" if args.pairs else "a text"
    rows, labels, about = own.labelled_rows(args, columns, last)
    splits = {split: [Labelled(label, *map(cut, texts)) for label, *texts in found] for split, found in rows.items()}
    meta = write_texts(args.out, splits, labels, about, args.min_count, args.vectors)
    kind = "pairs" if args.pairs else "texts"
    for split, count in meta["sentences"].items():
        found = Counter(label for label, *_ in rows[split])
        print(f"{split}: {count} {kind}, {', '.join(f'{label} {found[label]}' for label in labels)}")
