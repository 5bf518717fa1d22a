"""A text as one long stream of tokens, cut into rows that are read side by side, segment by segment.

With N tokens and B rows, row r has the tokens r L .. r L + L - 1, L = ceil(N / B), as its targets, and the token before
each as its source; before the first token of all stands EOS.  So every token is predicted exactly once, by whatever
number of rows; what the last rows lack is padding at their ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.data import Dataset

SHORTEST = 5  # of segments drawn at random, and the deviation of their lengths (Merity et al. 2018, section 4.1)


class StreamDataset(FairseqDataset):
    """All tokens of a split, N long; a length of fairseq's counting (`len`) is the number of tokens."""

    def __init__(self, tokens: Tensor, pad_index: int, eos_index: int):
        """tokens: N long.  Raises ValueError if there are none."""
        if not tokens.numel():
            raise ValueError("expected a stream of at least one token, got an empty one")
        self.tokens, self.pad_index, self.eos_index = tokens.long(), pad_index, eos_index

    def __len__(self) -> int:
        return self.tokens.numel()

    def __getitem__(self, index: int) -> Tensor:
        return self.tokens[index]

    def rows(self, batch_size: int) -> tuple[Tensor, Tensor]:
        """Source and target, B L each."""
        length = -(-len(self) // batch_size)
        padded = pad(self.tokens, (0, batch_size * length - len(self)), value=self.pad_index)
        before = torch.cat([padded.new_tensor([self.eos_index]), padded[:-1]])
        source = torch.where(padded == self.pad_index, padded, before)
        return source.view(batch_size, length), padded.view(batch_size, length)


class StreamSegments(Dataset):
    """The segments of B rows, in order; each is a batch.

    shard_id, num_shards: of B num_shards rows take the B that begin at row B shard_id.  more: what else a batch has, by
    name, B L each.
    """

    def __init__(
        self, dataset: StreamDataset, batch_size: int, lengths: Sequence[int], shard_id: int = 0, num_shards: int = 1
    ):
        """lengths: of the segments, which together cover a row."""
        source, target = dataset.rows(batch_size * num_shards)
        mine = slice(shard_id * batch_size, (shard_id + 1) * batch_size)
        self.source, self.target = source[mine], target[mine]
        self.more: dict[str, Tensor] = {}
        self.pad_index = dataset.pad_index
        self.ends = np.cumsum(lengths)
        if not len(lengths) or self.ends[-1] != source.size(1):
            raise ValueError(f"segments of {sum(lengths)} tokens do not cover rows of {source.size(1)}")

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, step: int) -> dict[str, Any]:
        """A batch: net_input.src_tokens and target B T long; step: the number of the segment, from 0 on.

        src_lengths counts the positions of each row that are not padding.
        """
        part = slice(int(self.ends[step - 1]) if step else 0, int(self.ends[step]))
        source, target = self.source[:, part], self.target[:, part]
        real = target != self.pad_index
        return {
            "id": torch.arange(len(source)) + len(source) * step,
            "step": step,
            "nsentences": len(source),
            "ntokens": int(real.sum()),
            "net_input": {"src_tokens": source.contiguous(), "src_lengths": real.sum(1)},
            "target": target.contiguous(),
            **{name: values[:, part].contiguous() for name, values in self.more.items()},
        }


def even_segments(row: int, length: int) -> list[int]:
    """A row of that many tokens in segments of `length`, the last one shorter."""
    return [length] * (row // length) + ([row % length] if row % length else [])


def random_segments(row: int, length: int, generator: np.random.Generator) -> list[int]:
    """Segments of lengths drawn anew (Merity et al. 2018, section 4.1): normal around `length`, one time in 20 around
    half of it, with deviation 5 and at least 5 tokens; the last one is what is left."""
    found: list[int] = []
    left = row
    while left:
        middle = length if generator.random() < 0.95 else length / 2
        found.append(min(left, max(SHORTEST, int(generator.normal(middle, SHORTEST)))))
        left -= found[-1]
    return found
