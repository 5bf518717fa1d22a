"""The gated recursive convolutional encoder (Cho et al. 2014b, sec. 3.2): the source as one vector, from a soft tree.

fairseq's types are read at run time: no postponed annotations here.
"""

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from seqstruct.layers.recurrent import CellState
from seqstruct.models.rnn_translation.encoder import EncoderOutput, SourceEncoder, reading_order
from seqstruct.ops.cells import gated_convolution


class GatedConvolutionEncoder(SourceEncoder):
    """A pyramid over each sentence; its top is the summary, and the one row of the memory."""

    def __init__(
        self, dictionary: Any, *, embed_dim: int, hidden_size: int, dropout: float = 0.0, max_positions: int = 1024
    ):
        """hidden_size: of the nodes.  dropout: probability, on the embeddings."""
        super().__init__(dictionary, embed_dim, max_positions)
        self.dropout = dropout
        self.leaves = nn.Linear(embed_dim, hidden_size, bias=False)
        bound = hidden_size**-0.5
        self.weight = nn.Parameter(torch.empty(2 * hidden_size + 6, hidden_size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(hidden_size))
        self.memory_size = self.summary_size = hidden_size
        self.state_size = 0

    def forward(self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **_: Any) -> EncoderOutput:
        """Encode tokens B S, padded anywhere; `src_lengths` is not needed."""
        padding_mask = src_tokens.eq(self.dictionary.pad())
        tops, _ = self._pyramid(src_tokens, padding_mask)
        length = (~padding_mask).sum(1)
        row = (length - 1).clamp_min(0)[:, None, None].expand(-1, 1, tops.size(2))
        empty = (length == 0)[:, None]
        summary = tops.gather(1, row)[:, 0].masked_fill(empty, 0.0)
        nothing = summary[:, :0]
        return EncoderOutput(summary[:, None], empty, summary, CellState(nothing, nothing))

    def soft_tree(self, sentence: Tensor) -> List[Tensor]:
        """The gates of one sentence, tokens S without padding: for levels 1 .. S-1, (S - level) 3, each w_c, w_l, w_r.

        w_c is the share of a node's new activation, w_l and w_r those of its left and right node below.
        """
        _, gates = self._pyramid(sentence[None], torch.zeros_like(sentence[None], dtype=torch.bool))
        return [level[0] for level in gates]

    def _pyramid(self, tokens: Tensor, padding_mask: Tensor) -> Tuple[Tensor, List[Tensor]]:
        ordered = tokens.gather(1, reading_order(padding_mask, reverse=False))
        embedded = dropout(self.embed_tokens(ordered), self.dropout, self.training)
        return gated_convolution(self.leaves(embedded), self.weight, self.bias)
