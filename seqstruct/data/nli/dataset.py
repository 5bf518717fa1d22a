"""The fairseq dataset of pairs of sentences with a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqstruct.data.nli.read import SentencePair
from seqstruct.data.sized import SizedDataset

PADDING = 0


class PairsDataset(SizedDataset):
    """Pairs in batches of like lengths, padded on the right.

    pairs: with heads in all or in none.  vocabulary: word ids from 1.  labels: by name, in the order of their ids.
    shuffle: whether the order among equal lengths is drawn anew in each epoch.
    """

    def __init__(
        self, pairs: Sequence[SentencePair], vocabulary: Mapping[str, int], labels: Sequence[str], shuffle: bool
    ):
        self.sides = [
            [torch.tensor([vocabulary[word] for word in side]) for side in (pair.premise, pair.hypothesis)]
            for pair in pairs
        ]
        self.heads = None
        if pairs and all(pair.heads is not None for pair in pairs):
            self.heads = [[torch.tensor(heads) for heads in pair.heads] for pair in pairs]
        self.targets = [labels.index(pair.label) for pair in pairs]
        self.sizes = np.array([max(map(len, sides)) for sides in self.sides], dtype=np.int64)
        self.shuffle = shuffle

    def __getitem__(self, index: int) -> int:
        return int(index)

    def ordered_indices(self) -> np.ndarray:
        """By the lengths of both sentences; fairseq calls this under a seed of its own, which decides ties."""
        order = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))
        hypothesis = np.array([len(sides[1]) for sides in self.sides])
        return order[np.lexsort((hypothesis[order], self.sizes[order]))]

    def collater(self, samples: Sequence[int]) -> dict[str, Any]:
        """net_input: premise B T and hypothesis B S, word ids, 0 = padding; heads: the same shapes each, or None.

        target: B, label ids.
        """
        if not len(samples):
            return {}

        def padded(rows: Sequence[Sequence[Tensor]], side: int) -> Tensor:
            return pad_sequence([rows[number][side] for number in samples], batch_first=True, padding_value=PADDING)

        heads = None if self.heads is None else (padded(self.heads, 0), padded(self.heads, 1))
        return {
            "id": torch.tensor(samples),
            "nsentences": len(samples),
            "ntokens": sum(len(side) for number in samples for side in self.sides[number]),
            "net_input": {"premise": padded(self.sides, 0), "hypothesis": padded(self.sides, 1), "heads": heads},
            "target": torch.tensor([self.targets[number] for number in samples]),
        }
