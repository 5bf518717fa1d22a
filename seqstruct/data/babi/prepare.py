"""`seqstruct prepare babi`: one task of bAbI."""

from __future__ import annotations

import argparse

DESCRIPTION = "one task of bAbI from the official files, stories held out for validation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--from", dest="source", required=True, metavar="DIR", help="folder with qaN_NAME_SPLIT.txt")
    parser.add_argument("--task", type=int, required=True, metavar="N", help="1 to 20")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make; it must not exist or be empty")
    parser.add_argument("--split-seed", type=int, default=1, metavar="N", help="draws validation stories (default: 1)")
    parser.add_argument("--checksums", metavar="FILE", help="SHA-256 of the official files, as sha256sum writes them")


def run(args: argparse.Namespace) -> None:
    """Write the folder and say what it holds."""
    from seqstruct.data.aligned import read_checksums
    from seqstruct.data.babi.folder import write_folder

    checksums = read_checksums(args.checksums) if args.checksums else None
    counts = write_folder(args.source, args.task, args.out, split_seed=args.split_seed, checksums=checksums)
    print(f"task {args.task}: " + ", ".join(f"{count} {split} questions" for split, count in counts.items()))
