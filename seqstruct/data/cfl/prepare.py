"""Strings of a context-free language for training, validation and test, with their true log-probabilities."""

from __future__ import annotations

import argparse


def _interval(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    if not (low.isdecimal() and high.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected LOW:HIGH, such as 40:80, not {text!r}")
    return int(low), int(high)


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """The options of the command; each default is the published setting."""
    parser.add_argument(
        "language",
        metavar="LANGUAGE",
        help="marked-reversal, unmarked-reversal, padded-reversal, dyck or hardest-cfl",
    )
    parser.add_argument("--train", type=int, default=10000, metavar="N", help="training strings (default: 10000)")
    parser.add_argument("--valid", type=int, default=1000, metavar="N", help="validation strings (default: 1000)")
    parser.add_argument(
        "--test-per-length", type=int, default=100, metavar="N", help="test strings of each valid length (default: 100)"
    )
    parser.add_argument(
        "--lengths",
        type=_interval,
        default=(40, 80),
        metavar="LOW:HIGH",
        help="shortest and longest training and validation string, in symbols (default: 40:80)",
    )
    parser.add_argument(
        "--test-lengths",
        type=_interval,
        default=(40, 100),
        metavar="LOW:HIGH",
        help="shortest and longest test string, in symbols (default: 40:100)",
    )
    parser.add_argument(
        "--batch", type=int, default=10, metavar="N", help="strings in a batch, all of one length (default: 10)"
    )
    parser.add_argument(
        "--grammar",
        default="published",
        metavar="FORM",
        help="published: the distribution of the published numbers, without the root's unary rules (default); "
        "as-written: the grammar with every rule",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of training and validation (default: 1)")
    parser.add_argument(
        "--test-seed", type=int, default=0, metavar="N", help="of the test set, the same for all --seed (default: 0)"
    )


def run(args: argparse.Namespace) -> None:
    """Write the folder and say what it holds."""
    from seqstruct.data.cfl.folder import Request, write_folder

    request = Request(**{name: getattr(args, name) for name in Request.__dataclass_fields__})
    meta = write_folder(request, args.out)
    counts = meta["valid_length_counts"]
    print(
        f"{args.out}: {request.language}, {request.train} training and {request.valid} validation strings of "
        f"{counts['train']} lengths ({request.lengths[0]} to {request.lengths[1]}), "
        f"{counts['test'] * request.test_per_length} test strings of {counts['test']} lengths "
        f"({request.test_lengths[0]} to {request.test_lengths[1]})"
    )
