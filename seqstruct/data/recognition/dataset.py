"""The fairseq dataset of strings with BOS before them and a label each; batches are of like lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor
from torch.nn import functional as F

from seqstruct.data.recognition.automata import END
from seqstruct.data.recognition.examples import LabelledString
from seqstruct.data.recognition.languages import FormalLanguage
from seqstruct.data.text_classification.dataset import TextClassificationDataset


class RecognitionDataset(TextClassificationDataset):
    """Labelled strings; `shuffle` decides which of equal length come first.

    right: which strings each trivial rule has right, bool, rules x strings.  following: the language, where batches
    are to have what may come next.
    """

    def __init__(
        self, examples: Sequence[LabelledString], dictionary: Dictionary, right: np.ndarray, shuffle: bool,
        following: FormalLanguage | None = None,
    ):
        ids = {dictionary[i]: i for i in range(dictionary.nspecial, len(dictionary))}
        tokens = [torch.tensor([dictionary.bos(), *map(ids.__getitem__, example.string)]) for example in examples]
        super().__init__(tokens, [int(example.member) for example in examples], dictionary.pad(), shuffle)
        self.examples, self.right, self.following = examples, torch.from_numpy(right), following
        self.eos, self.columns = dictionary.eos(), {symbol: i for i, symbol in enumerate([*ids, END])}

    def collater(self, samples: Sequence[tuple[int, Tensor, int, Tensor | None]]) -> dict[str, Any]:
        """Beside what texts have (src_tokens: B x (T+1), BOS first; target: B, 1 for members):

        symbols: B x (T+1) long, the string and EOS, then padding.  lengths: B, of strings.  right: B x rules bool.
        next_symbols: P x (T+1) x (V+1) bool, of the P members what may come after each prefix, END last; with
        `following`.
        """
        batch = super().collater(samples)
        if not batch:
            return batch
        lengths = batch["net_input"]["src_lengths"] - 1
        symbols = F.pad(batch["net_input"]["src_tokens"][:, 1:], (0, 1), value=self.pad_index)
        batch["symbols"] = symbols.scatter(1, lengths[:, None], self.eos)
        batch["lengths"], batch["right"] = lengths, self.right[:, batch["id"]].t()
        if self.following is not None:
            members = [self.examples[number] for number in batch["id"].tolist() if self.examples[number].member]
            batch["next_symbols"] = self._sets([m.string for m in members], symbols.size(1))
        return batch

    def _sets(self, strings: list[str], positions: int) -> Tensor:
        found = torch.zeros(len(strings), positions, len(self.columns), dtype=torch.bool)
        for row, string in zip(found, strings, strict=True):
            for at, symbols in enumerate(self.following.follow(string)):
                row[at, [self.columns[symbol] for symbol in symbols]] = True
        return found
