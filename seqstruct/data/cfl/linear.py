"""Right-linear grammars, those of automata: a string is read from left to right, one vector of weights a position."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.data.cfl.grammar import BinaryGrammar


def read(grammar: BinaryGrammar, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of strings of one length N, after each symbol, up to a factor whose logarithm comes last, B x (N + 1): weight
    of what was read by the nonterminal that is to go on, B x (N + 1) x size, and where the string ends, B x (N + 1).

    tokens: B x N long, terminal ids.  O(B N R) time for R rules with each terminal.
    """
    batch, length = tokens.shape
    size = grammar.size
    emit = torch.zeros(len(grammar.terminals), size, dtype=torch.float64)
    nonterminal, terminal = torch.as_tensor(grammar.lexical).unbind(1)
    emit[terminal, nonterminal] = torch.as_tensor(grammar.lexical_weight)
    left, first, second = torch.as_tensor(grammar.binary).unbind(1)
    weight = torch.as_tensor(grammar.binary_weight)
    pending = torch.zeros(batch, length + 1, size, dtype=torch.float64)
    ended, log_scale = torch.zeros(2, batch, length + 1, dtype=torch.float64)
    pending[:, 0, grammar.start] = 1
    for t in range(length):
        symbol = emit[tokens[:, t]]  # B size
        ending = (pending[:, t] * symbol).sum(1)
        following = torch.zeros(batch, size, dtype=torch.float64)
        following.index_add_(1, second, pending[:, t, left] * symbol[:, first] * weight)
        top = torch.maximum(following.amax(1), ending)
        top = torch.where(top > 0, top, 1.0)
        pending[:, t + 1], ended[:, t + 1] = following / top[:, None], ending / top
        log_scale[:, t + 1] = log_scale[:, t] + top.log()
    return pending, ended, log_scale


def linear_log_weights(grammar: BinaryGrammar, tokens: Tensor) -> Tensor:
    """Log-weights of strings of one length, summed over derivations (nats), -inf where there is none.

    tokens: B x N long, terminal ids.  Returns B float64.  O(B N R) time.
    """
    _, ended, log_scale = read(grammar, tokens)
    return ended[:, -1].log() + log_scale[:, -1]
