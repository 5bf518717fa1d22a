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
