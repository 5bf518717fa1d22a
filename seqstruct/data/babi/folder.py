"""One task of bAbI v1.2 (Weston et al. 2015), English, 1,000 questions to train and 1,000 to test.

The folder, for the task `babi_qa`, holds train.txt, valid.txt, test.txt and vocabulary.txt.  Whole stories with a tenth
of the training questions are held out for validation, drawn at random.  The vocabulary is that of all three files, as
is usual for bAbI: an answer that only the test set has can then be counted as wrong instead of being refused.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from seqstruct.data.babi.stories import Question, file_name, read_questions, vocabulary_of
from seqstruct.data.downloads import Remote, collect, raw_folder
from seqstruct.data.files import existing, new_folder, write_text
from seqstruct.data.text.aligned import read_lines

VOCABULARY = "vocabulary.txt"
ARCHIVE = Remote("https://dl.fbaipublicfiles.com/babi/tasks_1-20_v1-2.tar.gz", name="babi.tar.gz")
MANUAL = "the archive is tasks_1-20_v1-2.tar.gz; name its folder, or that of its files, by --from"
SHA256 = {  # of a task's training file and its test file after it
    1: "a61c1c2aff10e63b9652104183df329baf64ffa0ea5375879fba7157b53163ed",
    2: "3401632456ffbec0f21bb10d30a7b0d2b0cba395ab5ee265782ffe204b5aace3",
    3: "5cb87032c9d3f92f469f5fbbf96def22f3b9c4dfdb1ad99cd2b987ee3464cb2c",
    4: "e54756d138a4627901337adb1d9f9a790da4607e1f7e88ac6b12264c912f0951",
    5: "ee6b5ee7096552ca965318d5e532d28b8a4e90f3dd83c518ae6e67bada40c746",
    6: "dced5f8b4c619d40f406bd081350966a96ba9819f19b7aebf1b8a80a3639f3c6",
    7: "2af87464f67566c687b71f2c65938e302e40266bbd6cc0bc13c5d8f2da9c4257",
    8: "5337368f84dc1c50de03ef1336728557ace3cf738f0a27b8f8bd4968ea8ad398",
    9: "b7778ed7982386a081a2af8c72d9723ceb73def73e1466075060e6c016c8d513",
    10: "a6b374b58c543e11c2dd2d056827b28943c1efe9d9ccdfcf7981d1cc72a7f47a",
    11: "914cb16f5aaa07fef67a8e2743a769da3ebfb7e644ee4a7e3d218953bc1258b5",
    12: "f4a088a1ffcfd621e8df94f34fc1cf8e7e808f38bffc7598d2fcc77de9823c79",
    13: "a8f7283f1284146a5a81e0a98fb271cf1a9e98fdd17cf715c653704b9205663c",
    14: "4ac284bc50cc4ebbf9f391f3e5d8cd60a4fdb25739831f170f13951119d97fd4",
    15: "8b6e72aa4e92bdf18bd3485c4a679c779df0a674357bebae78cc738cf6e34dab",
    16: "56c432fabe90553d8903cfe9fda854847d808d42ec424c85b6f7d8a96a61a8e9",
    17: "da7d850477eec28419fc7e41a290fe9d15380f1e1b3c8916499de4d3e02367aa",
    18: "145f0e2983cc6f19342dbf140647788c4304dda41ecca1c80a05f741903bb114",
    19: "aa2a90c8794fc88cae5f1c51bb8900d49958b98614b4b771a457be0df634617b",
    20: "753cad384ae21b808fae7b3d0e0f9d626db131582c3ecf4d25ba251b7b298813",
}


def read_stories(path: str | os.PathLike) -> list[list[str]]:
    stories: list[list[str]] = []
    for line in read_lines(path):
        if line.startswith("1 "):
            stories.append([])
        stories[-1].append(line)
    return stories


def split_stories(path: str | os.PathLike, fraction: float, seed: int) -> tuple[list[str], list[str]]:
    """The lines of a file's stories, apart: kept to train, held out.

    fraction: of the questions that are held out at least, between 0 and 1.  Raises ValueError if none would be left.
    """
    stories = read_stories(path)
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
    source: str | os.PathLike, task: int, out: str | os.PathLike, *, split_seed: int = 1, checked: bool = False
) -> dict[str, int]:
    """Write a task's folder from the official files in `source`; the numbers of questions by split come back.

    checked: whether the files must be the published ones, by their checksum.
    Raises ValueError for what `read_questions` refuses, a missing or altered file, or if `out` holds files already.
    """
    official = {split: existing(Path(source) / file_name(task, split)) for split in ("train", "test")}
    if checked:
        found = hashlib.sha256(b"".join(path.read_bytes() for path in official.values())).hexdigest()
        if found != SHA256[task]:
            both = " and ".join(map(str, official.values()))
            raise ValueError(f"{both}: SHA-256 {found}, expected {SHA256[task]}: truncated or altered")
    questions = [question for path in official.values() for question in read_questions(path)]
    train, valid = split_stories(official["train"], 0.1, split_seed)
    splits = {"train": train, "valid": valid, "test": list(read_lines(official["test"]))}
    with new_folder(out) as folder:
        write_splits(folder, splits, questions)
    return {split: sum("\t" in line for line in lines) for split, lines in splits.items()}


def write_splits(folder: Path, splits: Mapping[str, Sequence[str]], questions: Iterable[Question]) -> None:
    """SPLIT.txt and the vocabulary of all questions."""
    for split, lines in splits.items():
        write_text(folder / f"{split}.txt", lines)
    write_text(folder / VOCABULARY, vocabulary_of(questions))


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--task", type=int, required=True, metavar="N", help="1 to 20")
    parser.add_argument("--split-seed", type=int, default=1, metavar="N", help="draws validation stories (default: 1)")


def run(args: argparse.Namespace) -> None:
    names = [file_name(args.task, split) for split in ("train", "test")]
    raw = raw_folder(args, [ARCHIVE], MANUAL)
    with TemporaryDirectory() as scratch:
        if not all((raw / name).is_file() for name in names):
            # the archive has four versions of each file, "en" being the English one of 1,000 questions
            raw = collect(raw, {name: [f"en/{name}"] for name in names}, scratch, MANUAL)[names[0]].parent
        counts = write_folder(raw, args.task, args.out, split_seed=args.split_seed, checked=not args.unchecked)
    print(f"task {args.task}: " + ", ".join(f"{count} {split} questions" for split, count in counts.items()))
