"""`seqstruct prepare nli`: pairs of sentences from SNLI or RTE."""

from __future__ import annotations

import argparse

DESCRIPTION = "natural language inference: SNLI or RTE with word vectors and, where there are any, parses"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("name", metavar="CORPUS", help="snli or rte")
    parser.add_argument("--from", dest="source", required=True, metavar="DIR", help="folder with the raw files")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make; it must not exist or be empty")
    parser.add_argument("--vectors", metavar="FILE", help="word vectors in text form, such as glove.840B.300d.txt")
    parser.add_argument("--heads", metavar="DIR", help="folder with SPLIT.premise.conllu and SPLIT.hypothesis.conllu")
    parser.add_argument("--lowercase", action="store_true", help="lowercase all words")


def run(args: argparse.Namespace) -> None:
    """Write the folder and say what it holds."""
    from seqstruct.data.nli.folder import write_folder

    meta = write_folder(
        args.name, args.source, args.out, vectors=args.vectors, heads=args.heads, lowercase=args.lowercase
    )
    counts = ", ".join(
        f"{count} {split} pairs ({meta['skipped'][split]} without a label skipped)"
        for split, count in meta["pairs"].items()
    )
    print(f"{args.name}: {counts}, {meta['words']} words")
