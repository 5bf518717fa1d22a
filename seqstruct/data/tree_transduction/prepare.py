"""Formulas of + and * in prefix notation, to be rewritten in infix notation."""

from __future__ import annotations

import argparse

from seqstruct.data.arguments import add_intervals, add_numbers


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """The options of the command; each default is the published setting, where there is one."""
    add_numbers(parser, {
        "--train": (5000, "formulas of each depth"), "--valid": (200, "likewise"), "--test": (200, "likewise"),
        "--expressions": (4, "most in one pair of parentheses"), "--seed": (1, "of training and validation"),
        "--test-seed": (0, "of the test set, the same for all --seed"),
    })  # fmt: skip
    depths = {"--depths": ((2, 4), "in training and validation"), "--test-depths": ((2, 6), "of the test set")}
    add_intervals(parser, depths)
    parser.add_argument("--nesting", type=float, default=0.2, metavar="P", help="probability that an expression is a "
                        "formula where a number would do (default: %(default)s; the source does not say)")


def run(args: argparse.Namespace) -> None:
    """Write the folder and print the lengths by depth."""
    from seqstruct.data.tree_transduction.folder import FormulasRequest, write_folder
    from seqstruct.data.tree_transduction.formula import Branching

    request = FormulasRequest(
        train=args.train, valid=args.valid, test=args.test, depths=args.depths, test_depths=args.test_depths,
        branching=Branching(args.expressions, args.nesting), seed=args.seed, test_seed=args.test_seed,
    )  # fmt: skip
    meta = write_folder(request, args.out)
    print(f"{args.out}: {args.train} training, {args.valid} validation and {args.test} test formulas of each depth")
    for split in ("train", "test"):
        for depth, lengths in meta["lengths"][split].items():
            sides = (f"{lengths[f'{s}_mean']:.1f} (at most {lengths[f'{s}_max']:.0f})" for s in ("prefix", "infix"))
            print(f"{split}, depth {depth}: {' symbols in prefix notation, '.join(sides)} in infix notation")
