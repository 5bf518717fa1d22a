"""The fairseq dataset of labelled sentences, or pairs of them; batches are of like lengths, padded on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqstruct.data.sized import ShuffledDataset


class TextClassificationDataset(ShuffledDataset):
    """Sentences with a label each."""

    def __init__(
        self,
        sentences: Sequence[Tensor],
        labels: Sequence[int],
        pad_index: int,
        shuffle: bool,
        second: Sequence[Tensor] | None = None,
    ):
        """sentences: dictionary ids, integers.  second: those of the second sentences, where labels are of pairs.

        The size of a pair is that of its longer sentence.
        Raises ValueError if a sentence is empty, or there are more of the first than of the second.
        """
        sides = [sentences] if second is None else [sentences, second]
        if len(sides[-1]) != len(sentences):
            raise ValueError(f"{len(sentences)} first sentences of pairs, {len(sides[-1])} second ones")
        for side in sides:
            empty = [number for number, sentence in enumerate(side) if not len(sentence)]
            if empty:
                raise ValueError(f"sentence {empty[0]} is empty")
        self.sentences, self.labels, self.pad_index, self.shuffle = sentences, labels, pad_index, shuffle
        self.second = second
        self.sizes = np.array([[len(sentence) for sentence in side] for side in sides], dtype=np.int64).max(0)

    def __getitem__(self, index: int) -> tuple[int, Tensor, int, Tensor | None]:
        """Number, dictionary ids, label, and the ids of the second sentence or None."""
        second = None if self.second is None else self.second[index].long()
        return int(index), self.sentences[index].long(), self.labels[index], second

    def collater(self, samples: Sequence[tuple[int, Tensor, int, Tensor | None]]) -> dict[str, Any]:
        """net_input.src_tokens: B x T long, padded on the right; src_lengths: B; target: B, labels.

        Of pairs also second_tokens: B x S, likewise, and second_lengths: B.
        """
        if not samples:
            return {}
        numbers, sentences, labels, second = zip(*samples, strict=True)
        net_input = self._padded("src", sentences)
        if self.second is not None:
            net_input |= self._padded("second", second)
        return {
            "id": torch.tensor(numbers),
            "nsentences": len(samples),
            "ntokens": sum(int(value.sum()) for name, value in net_input.items() if name.endswith("_lengths")),
            "net_input": net_input,
            "target": torch.tensor(labels),
        }

    def _padded(self, name: str, sentences: Sequence[Tensor]) -> dict[str, Tensor]:
        return {
            f"{name}_tokens": pad_sequence(sentences, batch_first=True, padding_value=self.pad_index),
            f"{name}_lengths": torch.tensor([len(sentence) for sentence in sentences]),
        }
