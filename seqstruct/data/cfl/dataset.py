"""The fairseq dataset of strings of a context-free language, in batches of one length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

from seqstruct.data.sized import SizedDataset


class CFLDataset(SizedDataset):
    """Strings with their true log-probabilities, in the folder's order; batches are stretches that share a length.

    strings: terminal ids of each string.  log_probability: log p(w | l) of each, nats, or None if unknown.
    valid_lengths: number of lengths that the distribution of the split chooses from.
    batch: most strings in a batch; in a folder of `seqstruct prepare cfl` these are the batches that were drawn.
    """

    def __init__(
        self,
        strings: Sequence[np.ndarray],
        dictionary: Dictionary,
        batch: int,
        log_probability: np.ndarray | None = None,
        valid_lengths: int = 1,
    ):
        self.strings = [torch.as_tensor(np.asarray(s, dtype=np.int64)) + dictionary.nspecial for s in strings]
        self.sizes = np.array([len(s) + 1 for s in strings], dtype=np.int64)
        self.log_probability = log_probability
        self.log_valid_lengths = math.log(valid_lengths)
        self.batch = batch
        self.bos, self.eos = dictionary.bos(), dictionary.eos()

    def __getitem__(self, index: int) -> tuple[int, Tensor]:
        """The number of a string and its dictionary ids."""
        return int(index), self.strings[index]

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[np.ndarray]:
        """Stretches of strings of one length, cut after `batch` strings, or fewer where the limits ask for it: of at
        most max_tokens predicted symbols, one string at least.

        required_batch_size_multiple is not applied: it would change the batches that were drawn.
        """
        most, batches = min(self.batch, max_sentences or self.batch), []
        for stretch in np.split(indices, np.flatnonzero(np.diff(self.sizes[indices])) + 1):
            if len(stretch):
                fit = most if max_tokens is None else min(most, max(1, max_tokens // int(self.sizes[stretch[0]])))
                batches += [stretch[start : start + fit] for start in range(0, len(stretch), fit)]
        return batches

    def collater(self, samples: Sequence[tuple[int, Tensor]]) -> dict[str, Any]:
        """A batch of strings of one length N.

        net_input.src_tokens: B x (N+1) long, BOS and the string.  target: B x (N+1) long, the string and EOS.
        true_log_probability: B float64, log p(w | l) in nats; true_log_valid_lengths: log of the number of lengths.
        Both are there where the log-probabilities are known.
        """
        if not samples:
            return {}
        rows = [row for row, _ in samples]
        tokens = torch.stack([string for _, string in samples])
        edge = tokens.new_empty(len(rows), 1)
        source = torch.cat([edge.fill_(self.bos), tokens], 1)
        target = torch.cat([tokens, edge.fill_(self.eos)], 1)
        sample = {
            "id": torch.tensor(rows),
            "nsentences": len(rows),
            "ntokens": target.numel(),
            "net_input": {
                "src_tokens": source,
                "src_lengths": torch.full((len(rows),), source.size(1)),
            },
            "target": target,
        }
        if self.log_probability is not None:
            sample["true_log_probability"] = torch.from_numpy(self.log_probability[rows])
            sample["true_log_valid_lengths"] = self.log_valid_lengths
        return sample
