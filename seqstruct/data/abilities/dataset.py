"""The fairseq dataset of tagged sequences; batches are of like lengths, padded on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqstruct.data.abilities.ability import Tagged
from seqstruct.data.sized import ShuffledDataset


class TaggedSequences(ShuffledDataset):
    """Sequences with BOS before.

    rule: the percentage of this split's targets that the best simple rule has right.
    """

    def __init__(self, examples: Sequence[Tagged], dictionary: Dictionary, rule: float, shuffle: bool):
        index, pad = dictionary.index, dictionary.pad()
        self.rule, self.shuffle, self.pad = rule, shuffle, pad
        self.sources = [torch.tensor([dictionary.bos(), *map(index, e.symbols)]) for e in examples]
        self.targets = [torch.tensor([pad, *(pad if t is None else index(t) for t in e.targets)]) for e in examples]
        self.levels = [torch.tensor([0, *e.levels]) for e in examples]
        self.sizes = np.array([len(source) for source in self.sources], dtype=np.int64)

    def __getitem__(self, index: int) -> tuple[int, Tensor, Tensor, Tensor]:
        """Number, dictionary ids of what is read and of what is asked for, levels."""
        return int(index), self.sources[index], self.targets[index], self.levels[index]

    def collater(self, samples: Sequence[tuple[int, Tensor, Tensor, Tensor]]) -> dict[str, Any]:
        """net_input.src_tokens: B x (N+1) long, BOS and the symbols, padded on the right; src_lengths: B.

        target: B x (N+1) long, padding where nothing is asked for, BOS among it.  levels: B x (N+1) long.  ntokens: how
        many targets there are.
        """
        if not samples:
            return {}
        numbers, sources, targets, levels = zip(*samples, strict=True)
        target = pad_sequence(targets, batch_first=True, padding_value=self.pad)
        return {
            "id": torch.tensor(numbers),
            "nsentences": len(samples),
            "ntokens": int((target != self.pad).sum()),
            "net_input": {
                "src_tokens": pad_sequence(sources, batch_first=True, padding_value=self.pad),
                "src_lengths": torch.tensor([len(source) for source in sources]),
            },
            "target": target,
            "levels": pad_sequence(levels, batch_first=True),
            "rule": self.rule,
        }
