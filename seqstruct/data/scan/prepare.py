"""SCAN (Lake and Baroni 2018), made from its rules: text/, raw/ and bin/ for the task translation, commands to actions.

--split simple tests a random fifth, length what takes more than 22 actions, add-jump and add-turn-left what contains a
primitive that is only ever trained by itself.  Commands to validate on are drawn from those to train on.
"""

from __future__ import annotations

import argparse
from collections import Counter

from seqstruct.data.arguments import add_numbers
from seqstruct.data.files import new_folder, write_json
from seqstruct.data.scan.commands import SPLITS, divided, held_out

SIDES = ("commands", "actions")


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--split", choices=SPLITS, default="simple", help="what is tested (default: %(default)s)")
    add_numbers(parser, {
        "--valid": (500, "training commands held out to validate on"), "--seed": (1, "of what is drawn"),
    })


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.text.aligned import write_pairs
    from seqstruct.data.text.word_pairs import WordPairOptions, prepare

    train, test = divided(args.split, args.seed)
    train, valid = held_out(train, args.split, args.valid, args.seed)
    splits = {"train": train, "valid": valid, "test": test}
    with new_folder(args.out) as folder:
        prefixes = {split: folder.parent / split for split in splits}
        for split, prefix in prefixes.items():
            write_pairs(prefix, SIDES, splits[split])
        prepare(prefixes, WordPairOptions(SIDES, ("spaces", "spaces")), folder)
        counts = {split: len(pairs) for split, pairs in splits.items()}
        write_json(folder / "meta.json", {"corpus": "scan", "split": args.split, "seed": args.seed, "counts": counts})
    (constant, _), = Counter(actions for _, actions in train).most_common(1)
    right = 100 * sum(actions == constant for _, actions in test) / len(test)
    print(f"{args.out}: {len(train):,} commands to train on, {len(valid):,} to validate on, {len(test):,} to test on; "
          f"the most frequent actions in training are {right:.2f} % of the test set's")
