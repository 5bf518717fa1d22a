"""Sequences of symbols, at some of which a target is asked for: recall, copying, state tracking, stacks, ListOps.

`seqstruct.data.abilities` says what each task is; a task takes the options that it has, and refuses others.
"""

from __future__ import annotations

import argparse

from seqstruct.data.abilities.tasks import TASKS, options_of
from seqstruct.data.arguments import add_intervals, add_numbers, interval

HELP = {
    "pairs": "recall: fewest and most pairs", "gap": "recall: symbols between a pair and its key's return",
    "keys": "recall: different keys", "values": "different values", "items": "copying: fewest and most items",
    "modulus": "counting: of the count", "generators": "z60, s3, a5, s5: symbols are generators and the identity alone",
    "kinds": "dyck: kinds of brackets", "depth": "dyck, undo, listops: the greatest", "max_args": "listops: of an "
    "operation",
}


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--task", required=True, metavar="TASK", help=", ".join(TASKS))
    add_numbers(parser, {
        "--train": (16000, "sequences to train on"), "--valid": (500, "likewise"),
        "--test": (500, "of the training lengths, and as many of longer ones"), "--seed": (1, "of the draw"),
    })
    add_intervals(parser, {
        "--lengths": ((16, 32), "symbols of a sequence"),
        "--long-lengths": ((48, 64), "likewise, of test_long, where only what is beyond training is asked for"),
    })
    for option, default in own_options().items():
        kind = {"action": "store_true"} if default is False else {
            "type": interval if isinstance(default, tuple) else int,
            "metavar": "LOW:HIGH" if isinstance(default, tuple) else "N"}
        parser.add_argument(f"--{option.replace('_', '-')}", default=None, help=HELP[option], **kind)


def own_options() -> dict[str, object]:
    """Each option that some task has, with the default of the first that has it."""
    return {option: default for task in reversed(TASKS) for option, default in options_of(task).items()}


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.abilities.folder import SequencesRequest, best_rule, write_folder

    given = {name: value for name in own_options() if (value := getattr(args, name)) is not None}
    request = SequencesRequest(args.task, given, args.train, args.valid, args.test, args.lengths, args.long_lengths,
                               args.seed)
    meta = write_folder(request, args.out)
    rule = best_rule(meta)
    reached = {split: meta["rules"][rule][split][0] for split in ("test", "test_long")}
    print(f"{args.out}: {args.task}, {args.train} sequences of {args.lengths[0]} to {args.lengths[1]} symbols to train "
          f"on; the best simple rule, {rule}, has {reached['test']:.1f} % of the test's targets right and "
          f"{reached['test_long']:.1f} % beyond the training lengths")
