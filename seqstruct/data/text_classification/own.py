"""Labelled text of your own, for the task text_classification.

A file has a label, a tab and a text on each line; or two files have the labels and the texts, line by line:
    --train train.tsv            --train train.labels train.txt
"""

from __future__ import annotations

import argparse
from collections import Counter

from seqstruct.data import own
from seqstruct.data.text_classification.folder import Labelled, add_dictionary_arguments, write_texts


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    own.add_arguments(parser, "FILE", "a label, a tab and a text a line; or two files, labels and texts", "+")
    own.add_word_arguments(parser)
    add_dictionary_arguments(parser)


def run(args: argparse.Namespace) -> None:
    (given, drawn), cut = own.given_and_missing(args), own.cutter(args)
    rows = {split: own.read_columns(paths, ("a label", "a text"), "a text") for split, paths in given.items()}
    dealt = own.deal(rows, args)
    splits = {split: [Labelled(label, cut(text)) for label, text in found] for split, found in dealt.items()}
    labels = own.check_labels({split: [sentence.label for sentence in found] for split, found in splits.items()})
    about = own.description(args, [path for paths in given.values() for path in paths], drawn)
    meta = write_texts(args.out, splits, labels, about, args.min_count, args.vectors)
    for split, count in meta["sentences"].items():
        found = Counter(sentence.label for sentence in splits[split])
        print(f"{split}: {count} texts, {', '.join(f'{label} {found[label]}' for label in labels)}")
