"""Text for language models."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from seqstruct.data.files import atomic_write, write_text


def counting(lines: int) -> dict[str, list[str]]:
    """Counting in circles; the first lines of training validate, the next ones test."""
    train = [" ".join(f"word{(i + j * (i % 5 + 1)) % 40}" for j in range(10)) for i in range(lines)]
    return {"train": train, "valid": train[:100], "test": train[100:200]}


def write_brown(folder: Path, texts: Mapping[str, Sequence[str]]) -> None:
    """brown.zip with 20 documents; they are dealt out one by one, so the last two are held out."""
    train = texts["train"]
    parts = [train[i * len(train) // 18 : (i + 1) * len(train) // 18] for i in range(18)]
    with atomic_write(folder / "brown.zip", "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        for number, lines in enumerate([*parts, texts["valid"], texts["test"]], 1):
            archive.writestr(zipfile.ZipInfo(f"brown/ca{number:02}"), "".join(f"{line}\n" for line in lines))


brown = partial(write_brown, texts=counting(300))


def _counting(name: str, folder: Path) -> None:
    for split, lines in counting(300).items():
        write_text(folder / name.format(split), lines)


wikitext2, wikitext103 = partial(_counting, "wiki.{}.raw"), partial(_counting, "wiki.{}.tokens")


def enwik8(folder: Path) -> None:
    """XML that counts."""
    pages = (f"<page><title>{i % 17}</title><text>{i} and {i + 1}.</text></page>" for i in range(400))
    write_text(folder / "enwik8", pages)


def ptb(folder: Path) -> None:
    """Sentences in which each word is one of the two that may follow the one before."""
    generator = np.random.default_rng(1)
    words = [f"w{i}" for i in range(20)]
    for split, count in (("train", 200), ("valid", 40), ("test", 40)):
        lines = []
        for _ in range(count):
            line = [int(generator.integers(20))]
            while len(line) < int(generator.integers(5, 16)):
                line.append((3 * line[-1] + int(generator.integers(2))) % 20)
            lines.append(" ".join(words[i] for i in line))
        write_text(folder / f"ptb.{split}.txt", lines)
