"""Questions about stories of your own, in bAbI's format, for the task babi_qa.

A line is a number, counted from 1 in each story, and a fact or a question; a question goes on with a tab, its answer, a
tab and the numbers of the facts that answer it:
    1 Mary took the milk.
    2 Mary went to the garden.
    3 Where is the milk?	garden	1 2
Where a split is missing whole stories are drawn.
"""

from __future__ import annotations

import argparse

from seqstruct.data import own
from seqstruct.data.babi.folder import read_stories, write_splits
from seqstruct.data.babi.stories import read_questions
from seqstruct.data.files import new_folder


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    own.add_arguments(parser, "FILE", "stories with questions")


def run(args: argparse.Namespace) -> None:
    given, drawn = own.given_and_missing(args)
    questions = [question for path in given.values() for question in read_questions(path)]
    dealt = own.deal({split: read_stories(path) for split, path in given.items()}, args)
    splits = {split: [line for story in stories for line in story] for split, stories in dealt.items()}
    counts = {split: sum("\t" in line for line in lines) for split, lines in splits.items()}
    if empty := [split for split, count in counts.items() if not count]:
        raise ValueError(f"{empty[0]}: no question in {len(dealt[empty[0]])} stories")
    with new_folder(args.out) as folder:
        write_splits(folder, splits, questions)
        own.write_meta(folder, own.description(args, list(given.values()), drawn), counts)
    print(", ".join(f"{split}: {count} questions" for split, count in counts.items()))
