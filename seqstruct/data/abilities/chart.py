"""The tasks of the chart of abilities, each in a folder of its own, with its settings.

`recipes/abilities/abilities.sh` trains on them.  Sequences are short, so that a training takes seconds; those of
`test_long` are about twice as long.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

from seqstruct.data.arguments import add_numbers


class Column(NamedTuple):
    """A task of the chart.  options: of the task.  lengths, long_lengths: of sequences, in symbols.

    title, asks: what a reader of the chart is told.
    """

    options: dict[str, object]
    lengths: tuple[int, int]
    long_lengths: tuple[int, int]
    title: str
    asks: str


CHART = {
    "recall": Column({"pairs": (4, 8)}, (24, 40), (56, 72), "recall", "the value of a key read before"),
    "copying": Column({"items": (4, 8)}, (24, 40), (56, 72), "copying", "items among blanks, in their order"),
    "induction": Column({}, (16, 32), (48, 64), "induction", "what followed a symbol the last time"),
    "parity": Column({}, (8, 20), (32, 48), "parity", "whether the ones are even or odd"),
    "counting": Column({"modulus": 5}, (8, 20), (32, 48), "mod 5", "the ones so far, modulo five"),
    "s3": Column({}, (8, 20), (32, 48), "S3", "the product of permutations of three things"),
    "a5": Column({"generators": True}, (8, 20), (32, 48), "A5", "the product of even permutations of five things"),
    "dyck": Column({"kinds": 4, "depth": 8}, (16, 32), (48, 64), "Dyck", "the bracket that has to close next"),
    "undo": Column({"values": 4, "depth": 8}, (16, 32), (48, 64), "undo", "a register that is written and set back"),
    "listops": Column({"depth": 6, "max_args": 5}, (10, 40), (48, 64), "ListOps", "the value of nested operations"),
}


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_numbers(parser, {
        "--train": (16000, "sequences to train on, of each task"), "--valid": (500, "likewise"),
        "--test": (500, "of the training lengths, and as many of longer ones"), "--seed": (1, "of the draws"),
    })


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.abilities.folder import SequencesRequest, write_folder
    from seqstruct.data.files import new_folder

    with new_folder(args.out) as beside:
        for task, column in CHART.items():
            request = SequencesRequest(task, column.options, args.train, args.valid, args.test, column.lengths,
                                       column.long_lengths, args.seed)
            write_folder(request, beside / task)
    print(f"{args.out}: {', '.join(CHART)}: {args.train} sequences to train on of each")
