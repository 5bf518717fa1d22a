"""The fairseq dataset of pairs of sentences with a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from seqstruct.data.nli.read import SentencePair
from seqstruct.data.text_classification.dataset import TextClassificationDataset

PADDING = 0


class PairsDataset(TextClassificationDataset):
    """Pairs in batches of like lengths, padded on the right.

    pairs: with heads in all or in none.  vocabulary: word ids from 1.  labels: by name, in the order of their ids.
    shuffle: whether the order among equal lengths is drawn, once for all epochs or, with fairseq's
    --update-epoch-batch-itr, for each.
    """

    def __init__(
        self, pairs: Sequence[SentencePair], vocabulary: Mapping[str, int], labels: Sequence[str], shuffle: bool
    ):
        first, second = ([torch.tensor([vocabulary[word] for word in words]) for words in side]
                         for side in ([p.premise for p in pairs], [p.hypothesis for p in pairs]))
        super().__init__(first, [labels.index(pair.label) for pair in pairs], PADDING, shuffle, second)
        self.heads = None
        if pairs and all(pair.heads is not None for pair in pairs):
            self.heads = [[torch.tensor(heads) for heads in pair.heads] for pair in pairs]

    def __getitem__(self, index: int) -> int:
        return int(index)

    def ordered_indices(self) -> np.ndarray:
        """By the lengths of both sentences; fairseq calls this under a seed of its own, which decides ties."""
        order, hypothesis = self.unsorted_indices(), np.array([len(words) for words in self.second])
        return order[np.lexsort((hypothesis[order], self.sizes[order]))]

    def collater(self, samples: Sequence[int]) -> dict[str, Any]:
        """net_input: premise B T and hypothesis B S, word ids, 0 = padding; heads: the same shapes each, or None.

        target: B, label ids.
        """
        batch = super().collater([super(PairsDataset, self).__getitem__(number) for number in samples])
        if batch:
            given, heads = batch["net_input"], None
            if self.heads is not None:
                sides = zip(*(self.heads[number] for number in samples), strict=True)
                heads = tuple(pad_sequence(side, batch_first=True, padding_value=PADDING) for side in sides)
            batch["net_input"] = {"premise": given["src_tokens"], "hypothesis": given["second_tokens"], "heads": heads}
        return batch
