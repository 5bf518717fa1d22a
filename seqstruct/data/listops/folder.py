"""ListOps (Nangia and Bowman 2018): formulas such as [MAX 2 9 [MIN 4 7 ] 0 ] and their values, one digit.

The lengths are those of the Long Range Arena (Tay et al. 2021) unless told otherwise.  A token is an operator with its
bracket, a digit or a closing bracket.  The folder is for the task text_classification, the digits being the labels.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from seqstruct.data.arguments import add_intervals, add_numbers
from seqstruct.data.listops.formulas import DIGITS, SYMBOLS, FormulaOptions, check_cost, draw_distinct
from seqstruct.data.text_classification.folder import SPLITS, Labelled, write_sentences


def write_folder(
    folder: str | os.PathLike, options: FormulaOptions, counts: Mapping[str, int], seed: int
) -> dict[str, Any]:
    """Draw formulas and make the folder; the contents of meta.json come back.

    counts: formulas by split, 1 or more each.  No formula is in two splits, or twice in one.  The test set is drawn
    first, then the validation set: more training data with the same seed leaves both as they are.
    Raises ValueError on counts below one, on a folder that holds files, and as `check_cost` and `draw_distinct` do.
    """
    for split in SPLITS:
        if counts[split] < 1:
            raise ValueError(f"{split}: expected 1 formula or more, got {counts[split]}")
    check_cost(options, sum(counts[split] for split in SPLITS))
    generator, seen = random.Random(seed), set()

    def sentences(count: int) -> Iterator[Labelled]:
        for tokens, value in draw_distinct(options, count, generator, seen):
            yield Labelled(str(value), tokens)

    splits = {split: sentences(counts[split]) for split in reversed(SPLITS)}
    info = {"corpus": "listops", **asdict(options), "seed": seed}
    return write_sentences(folder, splits, DIGITS, dict.fromkeys(SYMBOLS, 1), info)


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_intervals(parser, {"--lengths": ((501, 1999), "tokens of a formula: operators, digits and closing brackets")})
    add_numbers(parser, {
        "--train": (96000, "formulas to train on"), "--valid": (2000, "likewise"), "--test": (2000, "likewise"),
        "--max-depth": (10, "of nesting"), "--max-args": (10, "arguments of an operation"),
        "--seed": (1, "of the draw"),
    })


def run(args: argparse.Namespace) -> None:
    counts = {"train": args.train, "valid": args.valid, "test": args.test}
    meta = write_folder(args.out, FormulaOptions(args.lengths, args.max_depth, args.max_args), counts, args.seed)
    sizes = ", ".join(f"{count} {split}" for split, count in meta["sentences"].items())
    print(f"{args.out}: {sizes} formulas of {args.lengths[0]} to {args.lengths[1]} tokens")
