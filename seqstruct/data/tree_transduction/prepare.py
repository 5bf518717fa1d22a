"""Formulas of + and * in prefix notation, to be rewritten in infix notation."""

from __future__ import annotations

import argparse


def _interval(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    if not (low.isdecimal() and high.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected LOW:HIGH, such as 2:4, not {text!r}")
    return int(low), int(high)


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """The options of the command; each default is the published setting, where there is one."""
    for split, count in (("train", 5000), ("valid", 200), ("test", 200)):
        parser.add_argument(
            f"--{split}", type=int, default=count, metavar="N", help=f"formulas of each depth (default: {count})"
        )
    parser.add_argument(
        "--depths", type=_interval, default=(2, 4), metavar="LOW:HIGH", help="in training and validation (default: 2:4)"
    )
    parser.add_argument(
        "--test-depths", type=_interval, default=(2, 6), metavar="LOW:HIGH", help="of the test set (default: 2:6)"
    )
    parser.add_argument(
        "--expressions", type=int, default=4, metavar="N", help="most in one pair of parentheses (default: 4)"
    )
    parser.add_argument(
        "--nesting",
        type=float,
        default=0.2,
        metavar="P",
        help="probability that an expression is a formula where a number would do (default: 0.2; the source does not "
        "say)",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of training and validation (default: 1)")
    parser.add_argument(
        "--test-seed", type=int, default=0, metavar="N", help="of the test set, the same for all --seed (default: 0)"
    )


def run(args: argparse.Namespace) -> None:
    """Write the folder and print the lengths by depth."""
    from seqstruct.data.tree_transduction.folder import Request, write_folder
    from seqstruct.data.tree_transduction.formula import Branching

    request = Request(
        train=args.train, valid=args.valid, test=args.test, depths=args.depths, test_depths=args.test_depths,
        branching=Branching(args.expressions, args.nesting), seed=args.seed, test_seed=args.test_seed,
    )  # fmt: skip
    meta = write_folder(request, args.out)
    print(f"{args.out}: {args.train} training, {args.valid} validation and {args.test} test formulas of each depth")
    for split in ("train", "test"):
        for depth, lengths in meta["lengths"][split].items():
            sides = (f"{lengths[f'{s}_mean']:.1f} (at most {lengths[f'{s}_max']:.0f})" for s in ("prefix", "infix"))
            print(f"{split}, depth {depth}: {' symbols in prefix notation, '.join(sides)} in infix notation")
