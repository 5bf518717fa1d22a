"""What fairseq asks of a data set whose examples have sizes."""

from __future__ import annotations

import numpy as np
from fairseq.data import FairseqDataset


class SizedDataset(FairseqDataset):
    """sizes: of each example, in symbols or words."""

    sizes: np.ndarray

    def __len__(self) -> int:
        return len(self.sizes)

    def size(self, index: int) -> int:
        return int(self.sizes[index])

    num_tokens = size


class ShuffledDataset(SizedDataset):
    """In batches of like sizes; `shuffle` decides which of equal size come first."""

    shuffle: bool

    def unsorted_indices(self) -> np.ndarray:
        return np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))

    def ordered_indices(self) -> np.ndarray:
        """By size; fairseq calls this under a seed of its own, which decides ties when shuffling."""
        order = self.unsorted_indices()
        return order[np.argsort(self.sizes[order], kind="stable")]
