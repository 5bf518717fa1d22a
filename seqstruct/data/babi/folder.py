"""One bAbI task as a folder for the task `babi_qa`: train.txt, valid.txt, test.txt and vocabulary.txt.

A tenth of the official training stories is held out for validation: whole stories, drawn at random.  The
vocabulary is that of all three files, as is usual for bAbI: an answer that only the test set has can then be counted as
wrong instead of being refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from seqstruct.data.aligned import read_lines
from seqstruct.data.babi.stories import find_task, read_questions, vocabulary_of
from seqstruct.data.files import new_folder, verify

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


def write_folder(
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
    official = {split: find_task(source, task, split) for split in ("train", "test")}
    for path in official.values() if checksums is not None else ():
        if path.name not in checksums:
            raise ValueError(f"{path}: no checksum is known")
        verify(path, checksums[path.name])
    questions = [question for path in official.values() for question in read_questions(path)]
    train, valid = split_stories(official["train"], 0.1, split_seed)
    splits = {"train": train, "valid": valid, "test": list(read_lines(official["test"]))}
    files = {f"{split}.txt": lines for split, lines in splits.items()} | {VOCABULARY: vocabulary_of(questions)}
    with new_folder(out) as folder:
        for name, lines in files.items():
            (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {split: sum("\t" in line for line in lines) for split, lines in splits.items()}
