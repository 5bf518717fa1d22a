"""Pairs of sentences of your own, with labels, for the task nli.

A file has a label, a tab, a sentence, a tab and another sentence on each line; or three files have the labels and the
sentences, line by line:
    --train train.tsv            --train train.labels train.first train.second
"""

from __future__ import annotations

import argparse

from seqstruct.data import own
from seqstruct.data.nli.folder import write_pairs
from seqstruct.data.nli.read import Pairs, SentencePair


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    said = "a label and two sentences a line, tabs between them; or a file for each of the three"
    own.add_arguments(parser, "FILE", said, "+")
    own.add_word_arguments(parser)
    parser.add_argument("--vectors", metavar="FILE", help="word vectors in text form, such as glove.840B.300d.txt")


def run(args: argparse.Namespace) -> None:
    cut, columns = own.cutter(args), ("a label", "a sentence", "a sentence")
    rows, labels, about = own.labelled_rows(args, columns, "two sentences with a tab between them")
    pairs = {split: Pairs([SentencePair(tuple(cut(one)), tuple(cut(other)), label) for label, one, other in found], 0)
             for split, found in rows.items()}
    meta = write_pairs(pairs, labels, args.out, about, vectors=args.vectors, lowercase=args.lowercase)
    print(", ".join(f"{split}: {count} pairs" for split, count in meta["pairs"].items()) + f"; {meta['words']} words")
