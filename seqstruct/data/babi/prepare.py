"""One bAbI task as a folder for the task `babi_qa`: train.txt, valid.txt, test.txt and vocabulary.txt.

A tenth of the official training stories is held out for validation: whole stories, drawn by --split-seed.  The
vocabulary is that of all three files, as is usual for bAbI: an answer that only the test set has can then be counted as
wrong instead of being refused.  `python -m seqstruct.data.babi.prepare --help` is what `data-prep/babi.sh` calls.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from seqstruct.data.babi.stories import find_task, read_questions, vocabulary_of
from seqstruct.data.files import atomic_write, verify
from seqstruct.data.parallel import read_checksums, read_lines

DESCRIPTION = "one of the 20 bAbI question-answering tasks, with a tenth of the stories held out for validation"
VOCABULARY = "vocabulary.txt"


def split_stories(path: str | os.PathLike, fraction: float, seed: int) -> tuple[list[str], list[str]]:
    """The lines of a file's stories, apart: kept to train, held out.

    fraction: of the questions that are held out at least, between 0 and 1.  Raises ValueError if none would be left.
    """
    stories: list[list[str]] = []
    for line in read_lines(path):
        if line.startswith("1 "):
            stories.append([])
        stories[-1].append(line)
    asked = [sum("\t" in line for line in story) for story in stories]
    held: set[int] = set()
    for chosen in np.random.default_rng(seed).permutation(len(stories)):
        if sum(asked[story] for story in held) >= fraction * sum(asked):
            break
        held.add(int(chosen))
    if sum(asked[story] for story in range(len(stories)) if story not in held) == 0 or not held:
        raise ValueError(f"{path}: too few questions to hold out {fraction:g} of them")
    parts: tuple[list[str], list[str]] = ([], [])
    for number, story in enumerate(stories):
        parts[number in held].extend(story)
    return parts


def prepare(
    source: str | os.PathLike,
    task: int,
    out: str | os.PathLike,
    *,
    split_seed: int = 1,
    checksums: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Write a task's folder from the official files in `source`; the numbers of questions by split come back.

    checksums: SHA-256 by file name; where given, both files must be listed and agree.
    Raises ValueError for what `read_questions` refuses, a missing or altered file, or if `out` holds files already.
    """
    out = Path(out)
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"{out}: expected a new or empty folder")
    official = {split: find_task(source, task, split) for split in ("train", "test")}
    for path in official.values() if checksums is not None else ():
        if path.name not in checksums:
            raise ValueError(f"{path}: no checksum is known")
        verify(path, checksums[path.name])
    questions = [question for path in official.values() for question in read_questions(path)]
    train, valid = split_stories(official["train"], 0.1, split_seed)
    files = {"train": train, "valid": valid, "test": list(read_lines(official["test"]))}
    for split, lines in files.items():
        with atomic_write(out / f"{split}.txt") as stream:
            stream.writelines(f"{line}\n" for line in lines)
    with atomic_write(out / VOCABULARY) as stream:
        stream.writelines(f"{word}\n" for word in vocabulary_of(questions))
    return {split: sum("\t" in line for line in lines) for split, lines in files.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `seqstruct prepare babi`."""
    parser.add_argument("--from", dest="source", required=True, metavar="DIR", help="folder with qaN_NAME_SPLIT.txt")
    parser.add_argument("--task", type=int, required=True, metavar="N", help="1 to 20")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--split-seed", type=int, default=1, metavar="N", help="draws the validation stories")
    parser.add_argument("--checksums", metavar="FILE", help="SHA-256 of the official files, as sha256sum writes them")


def run(args: argparse.Namespace) -> None:
    """Write the folder and say what it holds."""
    checksums = read_checksums(args.checksums) if args.checksums else None
    counts = prepare(args.source, args.task, args.out, split_seed=args.split_seed, checksums=checksums)
    print(f"task {args.task}: " + ", ".join(f"{count} {split} questions" for split, count in counts.items()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status comes back."""
    parser = argparse.ArgumentParser(prog="python -m seqstruct.data.babi.prepare", description=DESCRIPTION)
    add_arguments(parser)
    try:
        run(parser.parse_args(argv))
    except (ValueError, OSError) as error:
        print(f"seqstruct.data.babi.prepare: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
