"""`prpn`: the parsing-reading-predict network (Shen et al. 2018a), a language model with syntactic distances.

    parsing   d_t = ReLU(W_d ReLU(W_c [e_{t-L} .. e_t] + b_c) + b_d), a convolution over the last words (eq. 10, 11)
    reading   an LSTM whose last state is a gated attention over the states of the last words (eq. 12 to 15), in layers
    predict   the same attention once more, from the state h_t with an estimate of d_{t+1}, ReLU(W h_t + b); then
              a ReLU layer, a normalized tanh layer of the size of a word vector and the tied output layer (eq. 16, 17)

Keys are a projection of the last hidden state and the layer's input.  Of a segment, the last states, distances and word
vectors are carried on, so that its length does not matter.

As in the released code, and not in the paper: the weights of the attention are gates times exponentials of scores, all
divided by their sum, where eq. 12 divides gates and exponentials each by their own, so that the weights of S equal
scores add up to 1 / S and states fade; gates are smooth; and what tanh is taken of is normalized, by layer here and by
batch there.  Deviations: the code's normalization in the parsing network and the LSTM is left out, every layer has the
same distances, layers are not bridged by residuals, and dropout between steps is of recurrent weights, not of states.
"""

from dataclasses import dataclass
from typing import Any, Dict, NamedTuple, Tuple

import torch
from fairseq.models import register_model
from torch import Tensor, nn
from torch.nn import functional as F

from seqstruct.bridge.options import flag
from seqstruct.layers.recurrent import GatedLayer, variational_dropout
from seqstruct.models.language_models.awd_lstm import (
    AWDLSTMConfig,
    AWDLSTMLanguageModel,
    DistanceDecoder,
    Regularization,
)
from seqstruct.ops.cells import distance_gates, reading_lstm
from seqstruct.ops.linear import linear

NOWHERE = -1e4  # the logarithm of a gate to where no word is: its weight is exactly 0 beside that of any word

@dataclass
class PRPNConfig(AWDLSTMConfig):
    """Sizes and dropouts as released for PTB."""

    decoder_layers: int = flag(2, "layers of the reading network, 1 or more")
    decoder_embed_dim: int = flag(800, "size of word vectors, 1 or more")
    hidden_size: int = flag(1200, "size of all layers, 1 or more")
    dropout: float = flag(0.7, "variational, of what the output layer reads; 0 <= p < 1")
    input_dropout: float = flag(0.5, "variational, of word vectors; 0 <= p < 1")
    hidden_dropout: float = flag(0.5, "variational, of the layers' inputs; 0 <= p < 1")
    embedding_dropout: float = flag(0.0, "of whole words of the vocabulary; 0 <= p < 1")
    weight_dropout: float = flag(0.5, "of recurrent weights; 0 <= p < 1")
    memory_slots: int = flag(15, "words back that are attended to, 1 or more")
    lookback: int = flag(5, "words before the last that a distance is made of, 0 or more")
    inverse_temperature: float = flag(10.0, "tau, > 0: how sharp the gates are")


class PRPNState(NamedTuple):
    """vectors: B L E, of the last words; distances, there: B S, there False where no word was; memories: for each layer
    B S 2D, the hidden states and cells of the last words, the newest last, zeros where no word was.
    """

    vectors: Tensor
    distances: Tensor
    there: Tensor
    memories: Tuple[Tensor, ...]


class ReadingLayer(GatedLayer):
    """One layer of the reading network."""

    def __init__(self, input_size: int, hidden_size: int, weight_dropout: float):
        super().__init__(input_size, hidden_size, 4 * hidden_size, weight_dropout)
        self.bias = self.drawn(4 * hidden_size)
        self.key_of_hidden, self.key_bias = self.drawn(hidden_size, hidden_size), self.drawn(hidden_size)
        self.key_of_input = self.drawn(hidden_size, input_size)

    def forward(self, inputs: Tensor, log_gates: Tensor, memory: Tensor) -> Tuple[Tensor, Tensor]:
        """Hidden states B T D, and memories B (S + T) 2D of all words with those before.

        inputs: B T C; log_gates: B T S, of the S words before each step; memory: B S 2D.
        """
        steps, keys = linear(inputs, self.weight_ih, self.bias), linear(inputs, self.key_of_input, self.key_bias)
        by_step = (x.transpose(0, 1) for x in (steps, keys, log_gates))
        every = reading_lstm(*by_step, memory, self.recurrent_weight().t(), self.key_of_hidden.t())
        every = every.to(self.weight_ih.dtype)
        return every[:, memory.size(1) :, : self.hidden_size], every


class PRPNStack(nn.Module):
    """The three networks, from word vectors to what the output layer reads."""

    def __init__(
        self, embed_dim: int, hidden_size: int, layers: int, *, slots: int, lookback: int,
        inverse_temperature: float, hidden_dropout: float, weight_dropout: float,
    ):
        """Raises ValueError on numbers out of range."""
        super().__init__()
        for name, value, least in (("memory_slots", slots, 1), ("lookback", lookback, 0)):
            if value < least:
                raise ValueError(f"{name}: expected {least} or more, got {value}")
        if inverse_temperature <= 0:
            raise ValueError(f"inverse_temperature: expected a positive number, got {inverse_temperature}")
        self.embed_dim, self.hidden_size = embed_dim, hidden_size
        self.slots, self.lookback, self.inverse_temperature = slots, lookback, inverse_temperature
        self.hidden_dropout = hidden_dropout
        self.convolution = nn.Conv1d(embed_dim, hidden_size, lookback + 1)
        self.distance_layer = nn.Linear(hidden_size, 1)
        self.layers = nn.ModuleList(
            ReadingLayer(hidden_size if layer else embed_dim, hidden_size, weight_dropout) for layer in range(layers)
        )
        self.next_distance_layer = nn.Linear(hidden_size, 1)
        self.key_layer = nn.Linear(hidden_size, hidden_size)
        self.combine_layer = nn.Linear(2 * hidden_size, hidden_size)
        self.features_layer, self.features_norm = nn.Linear(hidden_size, embed_dim), nn.LayerNorm(embed_dim)
        for layer in (self.distance_layer, self.next_distance_layer):
            nn.init.ones_(layer.bias)  # a ReLU that starts at 0 for all words has no gradient

    def initial_state(self, batch_size: int) -> PRPNState:
        """No words before."""
        like = self.features_layer.weight
        return PRPNState(
            like.new_zeros(batch_size, self.lookback, self.embed_dim), like.new_zeros(batch_size, self.slots),
            torch.zeros(batch_size, self.slots, dtype=torch.bool, device=like.device),
            tuple(like.new_zeros(batch_size, self.slots, 2 * self.hidden_size) for _ in self.layers),
        )

    def distances(self, vectors: Tensor) -> Tensor:
        """B T of word vectors B (L + T) E."""
        found = self.convolution(vectors.transpose(1, 2)).relu().transpose(1, 2)
        return self.distance_layer(found).squeeze(2).relu()

    def log_gates(self, distances: Tensor, past: Tensor, there: Tensor) -> Tensor:
        """B T S, for distances B T of steps; past, there: B T S, of the words before each."""
        return distance_gates(distances, past, self.inverse_temperature).masked_fill(~there, NOWHERE)

    def forward(self, inputs: Tensor, state: Tuple[Any, ...]) -> Tuple[Tensor, PRPNState, Dict[str, Tensor]]:
        """Features B T E for word vectors B T E, the state after the last step, and `distances` B T."""
        state = PRPNState(*state)
        if not inputs.size(1):
            return inputs, state, {"distances": inputs[..., 0]}
        vectors = torch.cat([state.vectors, inputs], 1)
        distances = torch.cat([state.distances, self.distances(vectors)], 1)  # B S+T
        there = F.pad(state.there, (0, inputs.size(1)), value=True)
        past = distances.unfold(1, self.slots, 1)  # B T+1 S, of the words before each step, the last one's next too
        present = there.unfold(1, self.slots, 1)
        log_gates = self.log_gates(distances[:, self.slots :], past[:, :-1], present[:, :-1])
        hidden, memories = inputs, []
        for number, layer in enumerate(self.layers):
            if number:
                hidden = variational_dropout(hidden, self.hidden_dropout, self.training)
            hidden, memory = layer(hidden, log_gates, state.memories[number])
            memories.append(memory)
        features = self._predict(hidden, memories[-1][..., : self.hidden_size], past[:, 1:], present[:, 1:])
        S = self.slots
        after = PRPNState(
            vectors[:, vectors.size(1) - self.lookback :], distances[:, -S:], there[:, -S:],
            tuple(memory[:, -S:] for memory in memories),
        )
        return features, after, {"distances": distances[:, S:]}

    def _predict(self, hidden: Tensor, memory: Tensor, past: Tensor, there: Tensor) -> Tensor:
        """B T E from the top layer's states B T D, and B (S + T) D with those before; past, there: B T S."""
        log_gates = self.log_gates(self.next_distance_layer(hidden).squeeze(2).relu(), past, there)
        slots = memory.unfold(1, self.slots, 1)[:, 1:]  # B T D S, the step's own state last
        scores = (self.key_layer(hidden).unsqueeze(2) @ slots).squeeze(2) * self.hidden_size**-0.5
        reading = (slots @ (scores + log_gates).softmax(2).unsqueeze(3)).squeeze(3)
        both = variational_dropout(torch.cat([reading, hidden], 2), self.hidden_dropout, self.training)
        return self.features_norm(self.features_layer(self.combine_layer(both).relu())).tanh()


@register_model("prpn", dataclass=PRPNConfig)
class PRPN(AWDLSTMLanguageModel):
    """A language model on `DistanceDecoder`."""

    @staticmethod
    def build_decoder(cfg: Any, dictionary: Any, rates: Regularization, sizes: list) -> DistanceDecoder:
        rnn = PRPNStack(
            cfg.decoder_embed_dim, cfg.hidden_size, len(sizes), slots=cfg.memory_slots,
            lookback=cfg.lookback, inverse_temperature=cfg.inverse_temperature, hidden_dropout=rates.hidden,
            weight_dropout=rates.weight,
        )
        return DistanceDecoder(dictionary, rnn, cfg.decoder_embed_dim, rates)
