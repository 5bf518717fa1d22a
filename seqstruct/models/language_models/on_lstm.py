"""`on_lstm`: a language model of ordered-neurons LSTM layers (Shen et al. 2018b), with AWD-LSTM's regularisation.

Syntactic distances, section 4.2 there, come from the second layer; `seqstruct parse` makes trees of them.
"""

from dataclasses import dataclass
from typing import Any, Dict, Tuple

from fairseq.models import register_model
from torch import Tensor

from seqstruct.bridge.options import flag
from seqstruct.layers.recurrent import CellState, GatedLayer, RecurrentStack
from seqstruct.models.language_models.awd_lstm import (
    AWDLSTMConfig,
    AWDLSTMLanguageModel,
    DistanceDecoder,
    Regularization,
)
from seqstruct.ops.cells import ordered_lstm
from seqstruct.ops.linear import linear


@dataclass
class ONLSTMConfig(AWDLSTMConfig):
    """Options of AWD-LSTM, with the released dropouts for PTB, and two more."""

    dropout: float = flag(0.45, "variational, of the last layer's output; 0 <= p < 1")
    input_dropout: float = flag(0.5, "variational, of word vectors; 0 <= p < 1")
    hidden_dropout: float = flag(0.3, "variational, between layers; 0 <= p < 1")
    weight_dropout: float = flag(0.45, "of recurrent weights; 0 <= p < 1")
    chunk_size: int = flag(10, "neurons that share a master gate; divides all layer sizes")
    distance_layer: int = flag(2, "layer whose distances make trees, from 1")


class ONLSTMLayer(GatedLayer):
    """One layer of ordered neurons."""

    def __init__(self, input_size: int, hidden_size: int, chunk_size: int, weight_dropout: float):
        """Raises ValueError if the chunks do not divide the size."""
        if chunk_size < 1 or hidden_size % chunk_size:
            raise ValueError(f"chunk_size: expected a divisor of the layer's size {hidden_size}, got {chunk_size}")
        rows = 2 * hidden_size // chunk_size + 4 * hidden_size
        super().__init__(input_size, hidden_size, rows, weight_dropout)
        self.chunk_size, self.bias = chunk_size, self.drawn(rows)

    def forward(self, inputs: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, CellState, Dict[str, Tensor]]:
        """Hidden states B T D for inputs B T C, the state after the last step, and `distances` B T."""
        projected = linear(inputs, self.weight_ih, self.bias)
        hidden, distances, *last = ordered_lstm(projected, self.recurrent_weight(), *state, self.chunk_size)
        return hidden, CellState(*last), {"distances": distances}


class ONLSTMDecoder(DistanceDecoder):
    """With the distances of one layer."""

    def __init__(self, *args: Any, distance_layer: int):
        super().__init__(*args)
        if not 1 <= distance_layer <= len(self.rnn.layers):
            raise ValueError(f"distance_layer: expected 1 to {len(self.rnn.layers)}, got {distance_layer}")
        self.distances = f"{distance_layer - 1}.distances"


@register_model("on_lstm", dataclass=ONLSTMConfig)
class ONLSTMLanguageModel(AWDLSTMLanguageModel):
    """A language model on `ONLSTMDecoder`."""

    @staticmethod
    def build_decoder(cfg: Any, dictionary: Any, rates: Regularization, sizes: list) -> ONLSTMDecoder:
        layers = [ONLSTMLayer(*size, cfg.chunk_size, rates.weight) for size in sizes]
        rnn = RecurrentStack(layers, hidden_dropout=rates.hidden)
        return ONLSTMDecoder(dictionary, rnn, cfg.decoder_embed_dim, rates, distance_layer=cfg.distance_layer)
