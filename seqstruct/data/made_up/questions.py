"""Stories of bAbI."""

from __future__ import annotations

import random
from pathlib import Path

from seqstruct.data.babi.stories import TASKS
from seqstruct.data.files import write_text


def babi(folder: Path) -> None:
    """Stories of where things are that people took along, the same under the names of all tasks."""
    for task in TASKS:
        _task(folder, task)


def _task(folder: Path, task: int) -> None:
    generator = random.Random(1)
    people, things, places = ["Mary", "John"], ["milk", "ball"], ["garden", "office", "kitchen"]
    for split, count in (("train", 60), ("test", 20)):
        lines = []
        for _ in range(count):
            person, thing, place = (generator.choice(words) for words in (people, things, places))
            other = generator.choice([name for name in people if name != person])
            lines += [f"1 {person} took the {thing}.", f"2 {other} went to the {generator.choice(places)}."]
            lines += [f"3 {person} went to the {place}.", f"4 Where is the {thing}?\t{place}\t1 3"]
        write_text(folder / f"qa{task}_{TASKS[task]}_{split}.txt", lines)
