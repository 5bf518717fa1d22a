"""Documents as windows of sentences: boundaries on disk, and sentence pairs that bring the ones before them along.

A file of boundaries has the number of sentences of each document, one a line, in the order of the text.  The window of
a sentence is that sentence and up to `length - 1` before it in its document, with a separator in place of the end of
each sentence but the last; there is one window for each sentence (Peng 2022, section 5.5.2: length 4, stride 1).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq.data import FairseqDataset, LanguagePairDataset
from torch import Tensor

from seqstruct.data.text.aligned import read_lines


class Documents(NamedTuple):
    """Of each sentence, in the order of the text: the number of its document and its place there, both from 0."""

    document: np.ndarray
    position: np.ndarray


def read_documents(path: str | os.PathLike, sentences: int) -> Documents:
    """The boundaries in a file.

    Raises ValueError if it cannot be read, a line is no number of 1 or more, or they do not add up to `sentences`.
    """
    try:
        lines = list(read_lines(path))
    except OSError as error:
        raise ValueError(f"{path}: expected the number of sentences of each document, one a line: {error.strerror}") \
            from None
    for number, line in enumerate(lines, 1):
        if not line.strip().isdecimal() or int(line) < 1:
            raise ValueError(f"{path}, line {number}: expected a number of sentences, got {line.strip()!r}")
    counts = list(map(int, lines))
    if sum(counts) != sentences:
        raise ValueError(f"{path}: its documents have {sum(counts)} sentences, the text has {sentences}")
    document = np.repeat(np.arange(len(counts)), counts)
    return Documents(document, np.arange(sentences) - np.repeat(np.cumsum([0, *counts[:-1]])[: len(counts)], counts))


class SentenceWindows(FairseqDataset):
    """One side of the windows: item i, long, is the window of sentence i, with an EOS at its end alone."""

    def __init__(self, sentences: Any, sizes: np.ndarray, position: np.ndarray, length: int, separator: int):
        """sentences: an indexed dataset of ids with an EOS each, of these sizes.  separator: id between sentences."""
        self.sentences, self.separator = sentences, separator
        self.context = np.minimum(position, length - 1)  # sentences before each
        ends = np.concatenate([[0], np.cumsum(sizes)])
        last = np.arange(len(position))
        self.sizes = ends[last + 1] - ends[last - self.context]  # a separator for each EOS that is left out

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> Tensor:
        separator = torch.tensor([self.separator])
        parts = []
        for before in range(int(self.context[index]), 0, -1):
            sentence = self.sentences[index - before]
            parts += [sentence[:-1], separator.to(sentence.dtype)]
        return torch.cat([*parts, self.sentences[index]])

    def get_original_text(self, index: int) -> str:
        """The words of a window of raw text, to copy from; a separator, which is none, is unknown."""
        first = index - int(self.context[index])
        return " <unk> ".join(self.sentences.get_original_text(at) for at in range(first, index + 1))


class TargetWindows(SentenceWindows):
    """Windows of references: what is translated of each is its last sentence."""

    def get_original_text(self, index: int) -> str:
        return self.sentences.get_original_text(index)


class DocumentPairs(LanguagePairDataset):
    """Pairs of windows; batches tell the document and position of each, and keep to the order of positions if asked to.

    in_order: no window comes before those of earlier sentences of its document, and none stands in one batch with them.
    """

    def __init__(self, documents: Documents, in_order: bool, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.documents, self.in_order = documents, in_order

    def ordered_indices(self) -> np.ndarray:
        """By size; where order counts by position in the document, then by size."""
        indices = super().ordered_indices()
        if not self.in_order:
            return indices
        return indices[np.argsort(self.documents.position[indices], kind="stable")]

    def batch_by_size(self, indices: np.ndarray, *args: Any, **options: Any) -> list[Any]:
        """fairseq's batches, for each position apart where order counts."""
        if not self.in_order:
            return super().batch_by_size(indices, *args, **options)
        places = self.documents.position[np.asarray(indices)]
        batches: list[Any] = []
        for part in np.split(np.asarray(indices), np.flatnonzero(np.diff(places)) + 1):
            batches += list(super().batch_by_size(part, *args, **options))
        return batches

    def collater(self, samples: Sequence[dict[str, Any]], pad_to_length: Any = None) -> dict[str, Any]:
        """fairseq's, with document and position: B long."""
        batch = super().collater(samples, pad_to_length)
        if batch:
            ids = batch["id"].numpy()
            batch["document"] = torch.from_numpy(self.documents.document[ids])
            batch["position"] = torch.from_numpy(self.documents.position[ids])
        return batch
