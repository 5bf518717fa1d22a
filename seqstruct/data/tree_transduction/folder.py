"""Formulas of + and * in prefix notation, to be rewritten in infix notation; each default is the published setting,
where there is one.

* `train.prefix`, `train.infix` and the same for valid and test: one formula a line, symbols separated by spaces.
* `dict.prefix.txt`, `dict.infix.txt`: fairseq dictionaries.
* `meta.json`: the request, the lengths by depth, SHA-256 of every other file.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seqstruct.data.arguments import add_intervals, add_numbers, at_least
from seqstruct.data.checked import SPLITS, check_file, check_split, write_meta
from seqstruct.data.checked import read_meta as read_checked
from seqstruct.data.files import new_folder, write_text
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.tree_transduction.formula import (
    INFIX_SYMBOLS,
    PREFIX_SYMBOLS,
    Branching,
    Formula,
    depth,
    infix,
    mean_symbols,
    parse_prefix,
    prefix,
    sample,
)

SIDES = ("prefix", "infix")
SYMBOLS = {"prefix": PREFIX_SYMBOLS, "infix": INFIX_SYMBOLS}
TRIES = 1000
MOST_SYMBOLS = 50_000_000  # in prefix notation: all formulas are held


@dataclass(frozen=True)
class FormulasRequest:
    """What a folder is to hold: `add_arguments` says what each field is; both ends of depths are included."""

    train: int = 5000
    valid: int = 200
    test: int = 200
    depths: tuple[int, int] = (2, 4)
    test_depths: tuple[int, int] = (2, 6)
    branching: Branching = field(default=Branching())
    seed: int = 1
    test_seed: int = 0

    def check(self) -> None:
        """Raises ValueError on numbers out of range, and on more formulas than can be held."""
        at_least(self, command=True, train=1, valid=1, test=1, seed=0, test_seed=0)
        for low, high in (self.depths, self.test_depths):
            if not 1 <= low <= high <= 50:
                raise ValueError(f"depths are from 1 to 50, the lower one first, not {low}:{high}")
        if self.branching.expressions < 2 or not 0 <= self.branching.nesting <= 1:
            raise ValueError(
                "an operator has 2 or more expressions, and nesting is a probability, not "
                f"{self.branching.expressions} and {self.branching.nesting}"
            )
        counts = ((self.train + self.valid, self.depths), (self.test, self.test_depths))
        symbols = sum(n * mean_symbols(d, self.branching) for n, (low, high) in counts for d in range(low, high + 1))
        if symbols > MOST_SYMBOLS:
            raise ValueError(
                f"such formulas have some {symbols:,.0f} symbols together, expected {MOST_SYMBOLS:,} or fewer: ask for "
                "fewer of them, less depth, fewer expressions or less nesting"
            )


class Formulas(NamedTuple):
    """One split: symbols of both forms, and the depth, of each formula."""

    prefix: list[list[str]]
    infix: list[list[str]]
    depths: list[int]


def write_folder(request: FormulasRequest, folder: str | os.PathLike) -> dict[str, Any]:
    """Sample the three splits, no formula twice in all of them, and write them; the contents of meta.json come back.

    Raises ValueError on a request that cannot be met, or if the folder exists and is not empty.
    """
    request.check()
    with new_folder(folder) as beside:
        seen: set[tuple[str, ...]] = set()
        lengths = {}
        for split in ("test", "train", "valid"):
            seeds = [request.test_seed, 2] if split == "test" else [request.seed, SPLITS.index(split)]
            low, high = request.test_depths if split == "test" else request.depths
            generator = np.random.default_rng(seeds)
            formulas = [
                _unseen(d, request.branching, generator, seen)
                for d in range(low, high + 1)
                for _ in range(getattr(request, split))
            ]
            lengths[split] = _lengths(formulas)
            for side, form in zip(SIDES, (prefix, infix), strict=True):
                write_text(beside / f"{split}.{side}", (" ".join(form(formula)) for formula in formulas))
        for side in SIDES:
            write_text(beside / f"dict.{side}.txt", (f"{symbol} 1" for symbol in SYMBOLS[side]))
        return write_meta(beside, {**asdict(request), "branching": request.branching._asdict(), "lengths": lengths})


def _unseen(depth: int, branching: Branching, generator: np.random.Generator, seen: set[tuple[str, ...]]) -> Formula:
    for _ in range(TRIES):
        formula = sample(depth, branching, generator)
        form = tuple(prefix(formula))
        if form not in seen:
            seen.add(form)
            return formula
    raise ValueError(f"{TRIES} formulas of depth {depth} in a row were there already; ask for fewer")


def _lengths(formulas: list[Formula]) -> dict[str, dict[str, float]]:
    """By depth: mean and greatest number of symbols of both forms."""
    found: dict[int, list[tuple[int, int]]] = {}
    for formula in formulas:
        found.setdefault(depth(formula), []).append((len(prefix(formula)), len(infix(formula))))
    return {
        str(d): {
            f"{side}_{name}": round(float(value), 2)
            for side, column in zip(SIDES, zip(*pairs, strict=True), strict=True)
            for name, value in (("mean", np.mean(column)), ("max", max(column)))
        }
        for d, pairs in sorted(found.items())
    }


read_meta = partial(read_checked, command="tree_transduction", dictionaries=[f"dict.{side}.txt" for side in SIDES])


def read_split(folder: str | os.PathLike, split: str, meta: Mapping[str, Any]) -> Formulas:
    """The formulas of a split.

    Raises ValueError if the split does not exist, a file is missing or altered, or, with file and line, a prefix form
    is no formula (unbalanced, say) or its line has not its infix form beside it.
    """
    check_split(folder, split)
    return parse_pairs(*(check_file(folder, meta, f"{split}.{side}") for side in SIDES))


def parse_pairs(prefix_path: Path, infix_path: Path) -> Formulas:
    """Both forms of the formulas of two files, checked against each other; ValueError as `read_split`."""
    found = Formulas([], [], [])
    forms = [line.split() for line in read_lines(infix_path)]
    for number, line in enumerate(read_lines(prefix_path), 1):
        symbols = line.split()
        try:
            formula = parse_prefix(symbols)
        except ValueError as error:
            raise ValueError(f"{prefix_path}, line {number}: {error}") from None
        if number > len(forms) or forms[number - 1] != infix(formula):
            raise ValueError(f"{infix_path}, line {number}: not the infix form of line {number} of {prefix_path.name}")
        found.prefix.append(symbols)
        found.infix.append(forms[number - 1])
        found.depths.append(depth(formula))
    if len(forms) != len(found.prefix):
        raise ValueError(f"{infix_path}: {len(forms)} lines, but {prefix_path.name} has {len(found.prefix)}")
    return found


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_numbers(parser, {
        "--train": (5000, "formulas of each depth"), "--valid": (200, "likewise"), "--test": (200, "likewise"),
        "--expressions": (4, "most in one pair of parentheses"), "--seed": (1, "of training and validation"),
        "--test-seed": (0, "of the test set, the same for all --seed"),
    })
    depths = {"--depths": ((2, 4), "in training and validation"), "--test-depths": ((2, 6), "of the test set")}
    add_intervals(parser, depths)
    parser.add_argument("--nesting", type=float, default=0.2, metavar="P", help="probability that an expression is a "
                        "formula where a number would do (default: %(default)s; the source does not say)")


def run(args: argparse.Namespace) -> None:
    args.branching = Branching(args.expressions, args.nesting)
    fields = {name: getattr(args, name) for name in FormulasRequest.__dataclass_fields__}
    meta = write_folder(FormulasRequest(**fields), args.out)
    print(f"{args.out}: {args.train} training, {args.valid} validation and {args.test} test formulas of each depth")
    for split in ("train", "test"):
        for deep, lengths in meta["lengths"][split].items():
            sides = (f"{lengths[f'{s}_mean']:.1f} (at most {lengths[f'{s}_max']:.0f})" for s in SIDES)
            print(f"{split}, depth {deep}: {' symbols in prefix notation, '.join(sides)} in infix notation")
