"""Recurrent encoders: layers of LSTMs or GRUs over the source, in one or both directions.

fairseq's types are read at run time: no postponed annotations here.
"""

from typing import Any, NamedTuple, Optional

import torch
from fairseq.models import FairseqEncoder
from torch import Tensor, nn
from torch.nn.functional import dropout

from seqstruct.bridge.adapter import reorder_state
from seqstruct.layers.recurrent import CellState, RecurrentLayer, joined
from seqstruct.models.rnn_translation.clipping import Clipping

DIRECTIONS = ("forward", "first", "all")


class EncoderOutput(NamedTuple):
    """What an encoder gives a recurrent decoder; every tensor has the batch first.

    memory: B S E, in the order of the source, zeros at padding; padding_mask: B S bool, True = padding.
    summary: B E', the last hidden state of the top layer, of its backward direction where it has two.
    state: last states of all layers joined (see `layers.recurrent.joined`); of width 0 where one has two directions.
    """

    memory: Tensor
    padding_mask: Tensor
    summary: Tensor
    state: CellState


def reading_order(padding_mask: Tensor, reverse: bool) -> Tensor:
    """B S long: which column is read at each step; padding comes first.

    padding_mask: B S bool, True = padding, anywhere.  reverse: read the tokens from the last but one to the first, then
    the last (the end of the sentence); else in order.
    """
    columns = (~padding_mask).long().argsort(dim=1, stable=True)
    return columns.gather(1, _backwards(padding_mask, keep=1)) if reverse else columns


def _backwards(padding_mask: Tensor, keep: int) -> Tensor:
    """B S long: for rows whose padding is on the left, positions of real tokens turned round, the last `keep` not."""
    length = padding_mask.size(1)
    start = padding_mask.sum(1, keepdim=True)
    position = torch.arange(length, device=padding_mask.device)[None]
    moved = (position >= start) & (position < length - keep)
    return torch.where(moved, start + length - 1 - keep - position, position.expand(len(start), -1))


def _take(x: Tensor, order: Tensor) -> Tensor:
    """Columns of x, B S C, in the order B S."""
    return x.gather(1, order[..., None].expand(-1, -1, x.size(2)))


class SourceEncoder(FairseqEncoder):
    """Embeddings of the source, and what fairseq asks of an encoder; a subclass gives an `EncoderOutput`."""

    def __init__(self, dictionary: Any, embed_dim: int, max_positions: int):
        super().__init__(dictionary)
        self.positions = max_positions
        self.embed_tokens = nn.Embedding(len(dictionary), embed_dim, padding_idx=dictionary.pad())

    def reorder_encoder_out(self, encoder_out: EncoderOutput, new_order: Tensor) -> EncoderOutput:
        return reorder_state(encoder_out, new_order)

    def max_positions(self) -> int:
        return self.positions


class RecurrentEncoder(SourceEncoder):
    """Layers from the lowest up, each left to right or, side by side, in both directions."""

    def __init__(
        self,
        dictionary: Any,
        *,
        embed_dim: int,
        cell: str,
        hidden_size: int,
        layers: int,
        directions: str = "forward",
        residual_from: int = 0,
        reverse: bool = False,
        dropout: float = 0.0,
        max_positions: int = 1024,
        clipping: Optional[Clipping] = None,
    ):
        """hidden_size: of each direction.  directions: "forward", or both in the "first" layer or in "all".

        residual_from: the first layer, from 1, whose input is added to its output; 0 for none.  reverse: read the words
        from the last to the first.  dropout: probability, on the input of each layer.  clipping: of cells and outputs.
        Raises ValueError on a size that does not fit.
        """
        super().__init__(dictionary, embed_dim, max_positions)
        if layers < 1:
            raise ValueError(f"expected 1 or more encoder layers, got {layers}")
        if directions not in DIRECTIONS:
            raise ValueError(f"encoder directions: expected one of {', '.join(DIRECTIONS)}, got {directions!r}")
        self.reverse, self.residual_from, self.dropout, self.clipping = reverse, residual_from, dropout, clipping
        self.forward_layers, self.backward_layers = nn.ModuleList(), nn.ModuleDict()
        size = embed_dim
        for layer in range(layers):
            self.forward_layers.append(RecurrentLayer(cell, size, hidden_size, clipping=clipping))
            both = directions == "all" or (directions == "first" and layer == 0)
            if both:
                self.backward_layers[str(layer)] = RecurrentLayer(cell, size, hidden_size, clipping=clipping)
            before, size = size, hidden_size * (2 if both else 1)
            if residual_from and layer + 1 >= residual_from and before != size:
                raise ValueError(f"encoder layer {layer + 1}: no residual connection from size {before} to size {size}")
        self.memory_size, self.summary_size = size, hidden_size
        self.state_size = 0 if self.backward_layers else layers * hidden_size

    def forward(self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **_: Any) -> EncoderOutput:
        """Encode tokens B S, padded anywhere; `src_lengths` is not needed."""
        padding_mask = src_tokens.eq(self.dictionary.pad())
        order = reading_order(padding_mask, self.reverse)
        mask = padding_mask.gather(1, order)
        turned = _backwards(mask, keep=0) if self.backward_layers else None
        mask = mask if bool(mask.any()) else None
        x = self.embed_tokens(src_tokens.gather(1, order))
        states, summary = [], None
        for layer, forwards in enumerate(self.forward_layers):
            x = dropout(x, self.dropout, self.training)
            outputs, last = forwards(x, None, mask)
            states.append(last)
            summary = last.hidden
            if str(layer) in self.backward_layers:
                reverse, back = self.backward_layers[str(layer)](_take(x, turned), None, mask)
                outputs, summary = torch.cat([outputs, _take(reverse, turned)], 2), back.hidden
            x = outputs + x if self.residual_from and layer + 1 >= self.residual_from else outputs
            x = x if self.clipping is None else self.clipping(x)
        if mask is not None:
            x = x.masked_fill(mask[..., None], 0.0)  # a residual connection lets padding through
        state = joined(states)
        if self.backward_layers:
            state = CellState(state.hidden[:, :0], state.cell[:, :0])
        return EncoderOutput(_take(x, order.argsort(1)), padding_mask, summary, state)
