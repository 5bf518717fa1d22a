"""The fairseq dataset of labelled sentences; batches are of like lengths, padded on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


class TextClassificationDataset(FairseqDataset):
    """Sentences with a label each; `shuffle` decides which of equal length come first."""

    def __init__(self, sentences: Sequence[Tensor], labels: Sequence[int], pad_index: int, shuffle: bool):
        """sentences: dictionary ids, long.  Raises ValueError if one is empty."""
        empty = [number for number, sentence in enumerate(sentences) if not len(sentence)]
        if empty:
            raise ValueError(f"sentence {empty[0]} is empty")
        self.sentences, self.labels, self.pad_index, self.shuffle = sentences, labels, pad_index, shuffle
        self.sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, index: int) -> tuple[int, Tensor, int]:
        """Number, dictionary ids and label."""
        return int(index), self.sentences[index], self.labels[index]

    def num_tokens(self, index: int) -> int:
        """Words of a sentence."""
        return int(self.sizes[index])

    def size(self, index: int) -> int:
        """The same, for filtering by size."""
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        """By length; fairseq calls this under a seed of its own, which decides ties when shuffling."""
        order = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))
        return order[np.argsort(self.sizes[order], kind="stable")]

    def collater(self, samples: Sequence[tuple[int, Tensor, int]]) -> dict[str, Any]:
        """net_input.src_tokens: B x T long, padded on the right; src_lengths: B; target: B, labels."""
        if not samples:
            return {}
        numbers, sentences, labels = zip(*samples, strict=True)
        return {
            "id": torch.tensor(numbers),
            "nsentences": len(samples),
            "ntokens": sum(len(sentence) for sentence in sentences),
            "net_input": {
                "src_tokens": pad_sequence(sentences, batch_first=True, padding_value=self.pad_index),
                "src_lengths": torch.tensor([len(sentence) for sentence in sentences]),
            },
            "target": torch.tensor(labels),
        }
