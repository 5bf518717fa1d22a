"""Tables that own no row for the dictionary's special symbols.

A language of V terminals has an input table of V + 1 rows (terminals, BOS) and an output table of V + 1 rows
(terminals, EOS), as in Stack Attention, appendix D.1; dictionary ids are mapped to rows and back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn


class Vocabulary(Protocol):
    """What is asked of a dictionary, fairseq's or `Symbols`; the first `nspecial` ids are of special symbols."""

    nspecial: int

    def __len__(self) -> int: ...

    def pad(self) -> int:
        """The id of padding."""

    def eos(self) -> int:
        """The id of what ends a sentence."""


@dataclass(frozen=True)
class Symbols:
    """A vocabulary by its numbers alone."""

    size: int
    nspecial: int
    pad_id: int
    eos_id: int

    def __len__(self) -> int:
        return self.size

    def pad(self) -> int:
        return self.pad_id

    def eos(self) -> int:
        return self.eos_id


def terminal_rows(dictionary: Vocabulary) -> Tensor:
    """For each dictionary id its terminal, 0 .. V-1, or V for a special symbol."""
    terminals = len(dictionary) - dictionary.nspecial
    rows = torch.full((len(dictionary),), terminals)
    rows[dictionary.nspecial :] = torch.arange(terminals)
    return rows


class TerminalEmbedding(nn.Module):
    """Input vectors of terminals and of BOS; BOS (the last row) also stands for EOS as a start symbol, and padding."""

    def __init__(self, dictionary: Vocabulary, embed_dim: int):
        super().__init__()
        self.special, self.terminals = dictionary.nspecial, len(dictionary) - dictionary.nspecial
        self.embedding_dim = embed_dim
        self.padding_idx = dictionary.pad()
        self.weight = nn.Parameter(torch.empty(self.terminals + 1, embed_dim).normal_(std=embed_dim**-0.5))

    def forward(self, tokens: Tensor) -> Tensor:
        """B T C for dictionary ids B T."""
        rows = (tokens - self.special).masked_fill(tokens < self.special, self.terminals)
        return nn.functional.embedding(rows, self.weight)


class TerminalProjection(nn.Linear):
    """Logits of terminals and EOS (the last row), laid out over the dictionary; -inf for all other symbols."""

    def __init__(self, dictionary: Vocabulary, embed_dim: int):
        self.special, self.eos = dictionary.nspecial, dictionary.eos()
        super().__init__(embed_dim, len(dictionary) - dictionary.nspecial + 1)

    def forward(self, features: Tensor) -> Tensor:
        """B T N for features B T C, N the size of the dictionary."""
        terminals, eos = super().forward(features).split([self.out_features - 1, 1], -1)
        nowhere = eos.new_full((*eos.shape[:-1], self.special - 1), -math.inf)
        return torch.cat([nowhere[..., : self.eos], eos, nowhere[..., self.eos :], terminals], -1)


def soft_capped(logits: Tensor, cap: float) -> Tensor:
    """cap * tanh(logits / cap) (Gemma Team 2024, sec. 2); -inf, of a symbol that cannot come, stays."""
    return (cap * (logits / cap).tanh()).where(logits > -torch.inf, logits)
