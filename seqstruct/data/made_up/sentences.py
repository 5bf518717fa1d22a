"""Labelled sentences and pairs of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from seqstruct.data.files import atomic_write, write_text
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
        _write(folder / f"stsa.binary.{split}", count, generator)


def masked_lm(folder: Path) -> None:
    """The sentences of `sst`, which are the text of Brown too."""
    sst(folder)
    names = {"train": "train", "valid": "dev", "test": "test"}
    files = {split: (folder / f"stsa.binary.{name}").read_text("utf-8") for split, name in names.items()}
    write_brown(folder, {split: [line[2:] for line in text.splitlines()] for split, text in files.items()})


def subj(folder: Path) -> None:
    """300 in one file."""
    _write(folder / "subj.all", 300, np.random.default_rng(1))


def cr(folder: Path) -> None:
    """The same under another name."""
    _write(folder / "custrev.all", 300, np.random.default_rng(1))


def amazon(folder: Path) -> None:
    """Texts and labels apart, 5,200 to train on and hold out, 50 to test."""
    generator = np.random.default_rng(1)
    for part, count in AMAZON.items():
        found = list(labelled(count, generator))
        for ending, column in (("txt.tok", 1), ("cat", 0)):
            write_text(folder / f"elec-{part}.{ending}", (pair[column] for pair in found))


def _write(path: Path, count: int, generator: np.random.Generator) -> None:
    write_text(path, (f"{label} {line}" for label, line in labelled(count, generator)))


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
