"""ListOps (Nangia and Bowman 2018): formulas such as [MAX 2 9 [MIN 4 7 ] 0 ] and their values, one digit.

The lengths are those of the Long Range Arena (Tay et al. 2021) unless told otherwise.  A token is an operator with its
bracket, a digit or a closing bracket.
"""

from __future__ import annotations

import argparse

from seqstruct.data.arguments import add_intervals, add_numbers


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_intervals(parser, {"--lengths": ((501, 1999), "tokens of a formula: operators, digits and closing brackets")})
    add_numbers(parser, {
        "--train": (96000, "formulas to train on"), "--valid": (2000, "likewise"), "--test": (2000, "likewise"),
        "--max-depth": (10, "of nesting"), "--max-args": (10, "arguments of an operation"),
        "--seed": (1, "of the draw"),
    })  # fmt: skip


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.listops.folder import write_folder
    from seqstruct.data.listops.formulas import FormulaOptions

    counts = {"train": args.train, "valid": args.valid, "test": args.test}
    meta = write_folder(args.out, FormulaOptions(args.lengths, args.max_depth, args.max_args), counts, args.seed)
    sizes = ", ".join(f"{count} {split}" for split, count in meta["sentences"].items())
    print(f"{args.out}: {sizes} formulas of {args.lengths[0]} to {args.lengths[1]} tokens")
