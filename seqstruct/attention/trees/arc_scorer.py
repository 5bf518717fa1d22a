"""Scores of arcs between tokens by a bidirectional LSTM and a layer of pairs (Kim et al. 2017, appendix A.1).

    h_i = [LSTM forward; LSTM backward]    theta_ij = tanh(s . tanh(W1 h_i + W2 h_j + b))

theta_ij scores that token i is the parent of token j.  The outer tanh keeps every score between -1 and 1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqstruct.attention.option import Options, option
from seqstruct.ops.cells import fused_lstm
from seqstruct.ops.opaque import opaque
from seqstruct.ops.rows import Rows
from seqstruct.ops.softmax import additive_scores


class ScorerOptions(Options):
    """Options of mechanisms that score arcs, or spans, in this way."""

    hidden_size: int = option(50, least=1)  # of each direction of the scorer's LSTM
    score_size: int = option(50, least=1)  # units of the layer of pairs, the length of the paper's s
    bounded: bool = True  # the outer tanh, which keeps scores between -1 and 1


class Reader(nn.RNNBase):
    """The states B S h of PyTorch's LSTM, under its parameters' names, for inputs B S input_dim.

    Not `nn.LSTM`, at whose sight PyTorch does not compile.
    """

    def __init__(self, input_dim: int, hidden_size: int):
        super().__init__("LSTM", input_dim, hidden_size, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return _states(x, self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0, self.bias_hh_l0)


@opaque(lambda x, weight, *_: x.new_empty(*x.shape[:2], weight.size(0) // 4))
def _states(x: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, recurrent_bias: Tensor) -> Tensor:
    start = x.new_zeros(1, len(x), recurrent.size(1))
    return fused_lstm(x, start, start, weight, recurrent, bias, recurrent_bias)[0]


class ArcScorer(nn.Module):
    """B N N scores [b, parent, child] from tokens B S input_dim; with `root` N = S + 1 and row and column 0 the root's.

    hidden_size: of each direction.  score_size: length of s.  bounded: whether the outer tanh is there.
    The root's hidden state is a parameter; the LSTM does not see it.
    """

    def __init__(self, input_dim: int, hidden_size: int, score_size: int, bounded: bool, root: bool):
        super().__init__()
        self.forward_lstm = Reader(input_dim, hidden_size)
        self.backward_lstm = Reader(input_dim, hidden_size)
        self.parent_layer = nn.Linear(2 * hidden_size, score_size)
        self.child_layer = nn.Linear(2 * hidden_size, score_size, bias=False)
        self.score_weight = nn.Parameter(torch.empty(score_size).uniform_(-(score_size**-0.5), score_size**-0.5))
        self.root = nn.Parameter(torch.empty(2 * hidden_size).uniform_(-0.1, 0.1)) if root else None
        self.bounded = bounded

    def forward(self, tokens: Tensor, rows: Rows) -> Tensor:
        """tokens: B S input_dim, S >= 1, padding last as `rows` says; what is scored there is arbitrary."""
        states = torch.cat([self.forward_lstm(tokens), self._backward(tokens, rows)], 2)  # B S 2h
        if self.root is not None:
            states = torch.cat([self.root.to(states.dtype).expand(len(states), 1, -1), states], 1)
        parents, children = self.parent_layer(states), self.child_layer(states)
        scores = additive_scores(parents, children, self.score_weight.to(parents.dtype))
        scores = scores if scores.dtype == torch.float64 else scores.float()
        return scores.tanh() if self.bounded else scores

    def _backward(self, tokens: Tensor, rows: Rows) -> Tensor:
        """Right to left over the real tokens of each row: each row turned around, read, and turned back.

        Packed sequences do the same and take several times as long on a CPU.
        """
        if rows.real is None:
            return self.backward_lstm(tokens.flip(1)).flip(1)
        position = torch.arange(tokens.size(1), device=tokens.device)
        turned = torch.where(rows.real, rows.real.sum(1, keepdim=True) - 1 - position, position).unsqueeze(2)
        states = self.backward_lstm(tokens.gather(1, turned.expand_as(tokens)))
        return states.gather(1, turned.expand_as(states))
