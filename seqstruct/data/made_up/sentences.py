"""Labelled sentences and pairs of them, and stories with questions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from seqstruct.data.babi.stories import TASKS as STORIES
from seqstruct.data.babi.stories import file_name
from seqstruct.data.files import atomic_write, write_text
from seqstruct.data.made_up.inference import rte
from seqstruct.data.made_up.text import write_brown

AMAZON = {"25k-train": 5200, "test": 50}  # 5,000 are held out to validate


def labelled(count: int, generator: np.random.Generator) -> Iterator[tuple[int, str]]:
    """Sentences about food and whether it is praised."""
    words = {1: ("fine", "tasty", "fresh"), 0: ("stale", "bland", "cold")}
    things = ("soup", "bread", "rice", "tea", "cake", "the", "and", "was")
    for _ in range(count):
        label = int(generator.integers(2))
        line = [str(generator.choice(things)) for _ in range(int(generator.integers(3, 15)))]
        for position in generator.integers(len(line), size=2):
            line[position] = str(generator.choice(words[label]))
        yield label, " ".join(line)


def sst(folder: Path) -> None:
    """200 to train, 50 to validate and 50 to test."""
    generator = np.random.default_rng(1)
    for split, count in (("train", 200), ("dev", 50), ("test", 50)):
        _write(f"stsa.binary.{split}", folder, count, generator)


def masked_lm(folder: Path) -> None:
    """The sentences of `sst`, which are the text of Brown too, and the pairs of `inference.rte`."""
    sst(folder)
    rte(folder)
    names = {"train": "train", "valid": "dev", "test": "test"}
    files = {split: (folder / f"stsa.binary.{name}").read_text("utf-8") for split, name in names.items()}
    write_brown(folder, {split: [line[2:] for line in text.splitlines()] for split, text in files.items()})


def amazon(folder: Path) -> None:
    """Texts and labels apart, 5,200 to train on and hold out, 50 to test."""
    generator = np.random.default_rng(1)
    for part, count in AMAZON.items():
        found = list(labelled(count, generator))
        for ending, column in (("txt.tok", 1), ("cat", 0)):
            write_text(folder / f"elec-{part}.{ending}", (pair[column] for pair in found))


def _write(name: str, folder: Path, count: int = 300, generator: np.random.Generator | None = None) -> None:
    found = labelled(count, np.random.default_rng(1) if generator is None else generator)
    write_text(folder / name, (f"{label} {line}" for label, line in found))


subj, cr = partial(_write, "subj.all"), partial(_write, "custrev.all")


def glue(folder: Path) -> None:
    """All four tasks, and an encoding that knows single bytes alone."""
    from fairseq.data.encoders.gpt2_bpe_utils import bytes_to_unicode

    from seqstruct.data.corpora.glue import TASKS

    symbols = bytes_to_unicode().values()
    (folder / "encoder.json").write_text(json.dumps({symbol: number for number, symbol in enumerate(symbols)}))
    (folder / "vocab.bpe").write_text("#version: 0.2\n")
    (folder / "dict.txt").write_text("".join(f"{number} 1\n" for number in range(256)))
    generator = np.random.default_rng(1)
    for task in TASKS.values():
        for split, name in task.splits.items():
            columns = task.inputs if split.startswith("test") else (*task.inputs, task.label)
            with atomic_write(folder / task.folder / f"{name}.tsv") as stream:
                stream.write("\t".join(columns) + "\n")
                for label, line in labelled(60 if split == "train" else 12, generator):
                    texts = islice([line, " ".join(reversed(line.split()))], len(task.inputs))
                    stream.write("\t".join([*texts, task.labels[label]][: len(columns)]) + "\n")


def babi(folder: Path) -> None:
    """Stories of where things are that people took along, the same under the names of all tasks."""
    people, things, places = ["Mary", "John"], ["milk", "ball"], ["garden", "office", "kitchen"]
    generator = random.Random(1)
    for split, count in (("train", 60), ("test", 20)):
        lines = []
        for _ in range(count):
            person, thing, place = (generator.choice(words) for words in (people, things, places))
            other = generator.choice([name for name in people if name != person])
            lines += [f"1 {person} took the {thing}.", f"2 {other} went to the {generator.choice(places)}."]
            lines += [f"3 {person} went to the {place}.", f"4 Where is the {thing}?\t{place}\t1 3"]
        for task in STORIES:
            write_text(folder / file_name(task, split), lines)
