"""`seqstruct prepare text_classification`: labelled sentences from raw files."""

from __future__ import annotations

import argparse

DESCRIPTION = "labelled sentences (SST, subj, CR, Amazon reviews) from raw files, split as in Peng (2022)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("corpus", metavar="CORPUS", help="sst, subj, cr or amazon")
    parser.add_argument("--from", dest="source", required=True, metavar="DIR", help="folder with the raw files")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make; it must not exist or be empty")
    parser.add_argument("--vectors", metavar="FILE", help="word vectors in text form, such as those of GloVe")
    parser.add_argument("--min-count", type=int, default=1, metavar="N",
                        help="occurrences in training that a word needs, where there are no vectors (default: 1)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random splits (default: 1)")
    parser.add_argument("--unchecked", action="store_true", help="take raw files as they are, whatever they hold")


def run(args: argparse.Namespace) -> None:
    """Write the folder and say what it holds."""
    from seqstruct.data.text_classification.folder import Request, write_folder

    request = Request(args.corpus, args.min_count, args.seed, not args.unchecked)
    vectors = None
    if args.vectors is not None:
        from pathlib import Path

        from seqstruct.data.text_classification.folder import read_raw
        from seqstruct.data.word_vectors import read_vectors

        splits = read_raw(request, Path(args.source))
        words = {word for sentences in splits.values() for sentence in sentences for word in sentence.words}
        vectors = read_vectors(args.vectors, words)
    meta = write_folder(request, args.source, args.out, vectors)
    counts = ", ".join(f"{count} {split}" for split, count in meta["sentences"].items())
    print(f"{args.out}: {request.corpus}, {counts} sentences, labels {' '.join(meta['labels'])}")
