"""Tables that own no row for the dictionary's special symbols.

A language of V terminals has an input table of V + 1 rows (terminals, BOS) and an output table of V + 1 rows
(terminals, EOS), as in Stack Attention, appendix D.1; dictionary ids are mapped to rows and back.
"""

from __future__ import annotations

import math

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn


def terminal_rows(dictionary: Dictionary) -> Tensor:
    """For each dictionary id its terminal, 0 .. V-1, or V for a special symbol."""
    terminals = len(dictionary) - dictionary.nspecial
    rows = torch.full((len(dictionary),), terminals)
    rows[dictionary.nspecial :] = torch.arange(terminals)
    return rows


class TerminalEmbedding(nn.Module):
    """Input vectors of terminals and of BOS; BOS (the last row) also stands for EOS as a start symbol, and padding."""

    def __init__(self, dictionary: Dictionary, embed_dim: int):
        super().__init__()
        terminals = len(dictionary) - dictionary.nspecial
        self.embedding_dim = embed_dim
        self.padding_idx = dictionary.pad()
        self.weight = nn.Parameter(torch.empty(terminals + 1, embed_dim).normal_(std=embed_dim**-0.5))
        self.register_buffer("rows", terminal_rows(dictionary), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """B T C for dictionary ids B T."""
        return nn.functional.embedding(self.rows[tokens], self.weight)


class TerminalProjection(nn.Linear):
    """Logits of terminals and EOS (the last row), laid out over the dictionary; -inf for all other symbols."""

    def __init__(self, dictionary: Dictionary, embed_dim: int):
        terminals = len(dictionary) - dictionary.nspecial
        super().__init__(embed_dim, terminals + 1)
        columns = torch.full((len(dictionary),), terminals + 1)
        columns[dictionary.nspecial :] = torch.arange(terminals)
        columns[dictionary.eos()] = terminals
        self.register_buffer("columns", columns, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """B T N for features B T C, N the size of the dictionary."""
        logits = super().forward(features)
        nowhere = logits.new_full((*logits.shape[:-1], 1), -math.inf)
        return torch.cat([logits, nowhere], -1).index_select(-1, self.columns)
