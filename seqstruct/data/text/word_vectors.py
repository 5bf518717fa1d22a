"""Word vectors in text form, as GloVe's: a word and its numbers, apart by single spaces, one word a line."""

from __future__ import annotations

import os
import zlib
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from seqstruct.data.text.aligned import read_lines


def read_vectors(path: str | os.PathLike, words: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The float32 vectors of the wanted words (all if None) that a file, plain or .gz, has.

    A word may hold spaces, as a few of GloVe's do: the last numbers of a line, as many as the first line has, are the
    vector.  A first line of two whole numbers is word2vec's, the count of vectors and their size.  Of a word that comes
    twice the first counts.  Raises ValueError naming file and line where numbers are missing or are no numbers.
    """
    wanted = None if words is None else set(words)
    found: dict[str, np.ndarray] = {}
    size = number = 0
    header = False
    for number, line in enumerate(read_lines(path), 1):
        fields = line.rstrip(" ").split(" ")
        if number == 1 and len(fields) == 2 and all(map(str.isdecimal, fields)):
            header, size = True, int(fields[1])
            continue
        size = size or len(fields) - 1
        if size < 1 or len(fields) <= size:
            raise ValueError(f"{path}: line {number}: expected a word and {max(size, 1)} numbers, got {line[:60]!r}")
        word = " ".join(fields[:-size])
        if word in found or (wanted is not None and word not in wanted):
            continue
        try:
            found[word] = np.array(fields[-size:], dtype=np.float32)
        except ValueError:
            raise ValueError(f"{path}: line {number}: expected {size} numbers after {word[:40]!r}") from None
        if not np.isfinite(found[word]).all():
            raise ValueError(f"{path}: line {number}: the vector of {word[:40]!r} is not finite")
    if number == header:
        raise ValueError(f"{path}: expected word vectors, found none")
    return found


def vectors_with_hashing(
    words: Sequence[str], vectors: Mapping[str, np.ndarray], size: int, unknown: int = 100
) -> np.ndarray:
    """A row for each word, float32: its vector at unit length, or else one of `unknown` Gaussian ones.

    Which of those (mean 0, deviation 1) a word gets, its CRC-32 decides, so that it is the same in every run (Kim et
    al. 2017, appendix A.5).  Raises ValueError if a vector does not have `size` numbers.
    """
    drawn = np.random.default_rng(1).standard_normal((unknown, size)).astype(np.float32)
    rows = np.empty((len(words), size), dtype=np.float32)
    for row, word in zip(rows, words, strict=True):
        vector = vectors.get(word)
        if vector is None:
            row[:] = drawn[zlib.crc32(word.encode()) % unknown]
            continue
        if vector.shape != (size,):
            raise ValueError(f"the vector of {word!r} has {vector.size} numbers, expected {size}")
        norm = float(np.linalg.norm(vector))
        row[:] = vector / norm if norm > 0 else vector
    return rows
