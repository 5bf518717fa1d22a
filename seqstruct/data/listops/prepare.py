"""ListOps (Nangia and Bowman 2018): formulas such as [MAX 2 9 [MIN 4 7 ] 0 ] and their values, one digit.

The lengths are those of the Long Range Arena (Tay et al. 2021) unless told otherwise.  A token is an operator with its
bracket, a digit or a closing bracket.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """The options of the command."""
    parser.add_argument("--lengths", default="501:1999", metavar="MIN:MAX", help="tokens of a formula, both bounds "
                        "included: operators, digits and closing brackets (default: %(default)s, the arena's)")
    parser.add_argument("--train", type=int, default=96000, metavar="N", help="to train on (default: %(default)s)")
    parser.add_argument("--valid", type=int, default=2000, metavar="N", help="likewise (default: %(default)s)")
    parser.add_argument("--test", type=int, default=2000, metavar="N", help="likewise (default: %(default)s)")
    parser.add_argument("--max-depth", type=int, default=10, metavar="N", help="of nesting (default: %(default)s)")
    parser.add_argument("--max-args", type=int, default=10, metavar="N",
                        help="arguments of an operation (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the draw (default: %(default)s)")


def run(args: argparse.Namespace) -> None:
    """Write the folder and say what it holds."""
    from seqstruct.data.listops.folder import write_folder
    from seqstruct.data.listops.formulas import Options

    least, separator, most = args.lengths.partition(":")
    if not (separator and least.isdecimal() and most.isdecimal()):
        raise ValueError(f"--lengths: expected MIN:MAX such as 100:300, got {args.lengths!r}")
    options = Options((int(least), int(most)), args.max_depth, args.max_args)
    counts = {"train": args.train, "valid": args.valid, "test": args.test}
    meta = write_folder(args.out, options, counts, args.seed)
    sizes = ", ".join(f"{count} {split}" for split, count in meta["sentences"].items())
    print(f"{args.out}: {sizes} formulas of {options.lengths[0]} to {options.lengths[1]} tokens")
