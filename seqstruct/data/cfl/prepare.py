"""Strings of a context-free language for training, validation and test, with their true log-probabilities."""

from __future__ import annotations

import argparse

from seqstruct.data.arguments import add_intervals, add_numbers


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("language", metavar="LANGUAGE",
                        help="marked-reversal, unmarked-reversal, padded-reversal, dyck or hardest-cfl")
    add_numbers(parser, {
        "--train": (10000, "training strings"), "--valid": (1000, "validation strings"),
        "--test-per-length": (100, "test strings of each valid length"),
        "--batch": (10, "strings in a batch, all of one length"), "--seed": (1, "of training and validation"),
        "--test-seed": (0, "of the test set, the same for all --seed"),
    })  # fmt: skip
    add_intervals(parser, {
        "--lengths": ((40, 80), "shortest and longest training and validation string, in symbols"),
        "--test-lengths": ((40, 100), "shortest and longest test string, in symbols"),
    })  # fmt: skip
    parser.add_argument("--grammar", default="published", metavar="FORM", help="published: the distribution of the "
                        "published numbers, without the root's unary rules (default); as-written: with every rule")


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.cfl.folder import StringsRequest, write_folder

    request = StringsRequest(**{name: getattr(args, name) for name in StringsRequest.__dataclass_fields__})
    meta = write_folder(request, args.out)
    counts = meta["valid_length_counts"]
    print(
        f"{args.out}: {request.language}, {request.train} training and {request.valid} validation strings of "
        f"{counts['train']} lengths ({request.lengths[0]} to {request.lengths[1]}), "
        f"{counts['test'] * request.test_per_length} test strings of {counts['test']} lengths "
        f"({request.test_lengths[0]} to {request.test_lengths[1]})"
    )
