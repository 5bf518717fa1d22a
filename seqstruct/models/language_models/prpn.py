"""`prpn`: the parsing-reading-predict network (Shen et al. 2018a), a language model with syntactic distances.

    parsing   d_t = ReLU(W_d ReLU(W_c [e_{t-L} .. e_t] + b_c) + b_d), a convolution over the last words (eq. 10, 11)
    reading   an LSTM whose last state is a gated attention over the states of the last words (eq. 12 to 15), in layers
    predict   the same attention once more, from the state h_t with an estimate of d_{t+1}, ReLU(W h_t + b); then
              a ReLU layer, a tanh layer of the size of a word vector and the tied output layer (eq. 16, 17)

Keys are a projection of the last hidden state and the layer's input.  Of a segment, the last states, distances and word
vectors are carried on, so that its length does not matter.  Deviation: every layer has the same distances, and layers
are not bridged by residuals.
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
from seqstruct.ops.cells import distance_gates, gated_attention, lstm_step
from seqstruct.ops.linear import linear


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
    weight_dropout: float = flag(0.0, "of recurrent weights; 0 <= p < 1")
    memory_slots: int = flag(15, "words back that are attended to, 1 or more")
    lookback: int = flag(5, "words before the last that a distance is made of, 0 or more")
    inverse_temperature: float = flag(10.0, "tau, > 0: how sharp the gates are")


class PRPNState(NamedTuple):
    """vectors: B L E, of the last words; distances, there: B S, there False where no word was; hidden, cell: for each
    layer B S D, of the last words, the newest last.
    """

    vectors: Tensor
    distances: Tensor
    there: Tensor
    hidden: Tuple[Tensor, ...]
    cell: Tuple[Tensor, ...]


class ReadingLayer(GatedLayer):
    """One layer of the reading network."""

    def __init__(self, input_size: int, hidden_size: int, weight_dropout: float):
        super().__init__(input_size, hidden_size, 4 * hidden_size, weight_dropout)
        self.bias = self.drawn(4 * hidden_size)
        self.key_of_hidden = nn.Linear(hidden_size, hidden_size)
        self.key_of_input = nn.Linear(input_size, hidden_size, bias=False)

    def forward(
        self, inputs: Tensor, gates: Tensor, there: Tensor, hidden: Tensor, cell: Tensor
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """Hidden states B T D, and hidden states and cells B (S + T) D of all words with those before.

        inputs: B T C; gates, there: B T S, of the S words before each step; hidden, cell: B S D.
        """
        S = hidden.size(1)
        hiddens, cells = list(hidden.unbind(1)), list(cell.unbind(1))
        steps, keys = linear(inputs, self.weight_ih, self.bias).unbind(1), self.key_of_input(inputs).unbind(1)
        weight = self.recurrent_weight().t()
        for t, step in enumerate(steps):
            memory = torch.stack(hiddens[t : t + S], 1)  # B S D
            key = self.key_of_hidden(hiddens[-1]) + keys[t]
            scores = (memory @ key.unsqueeze(2)).squeeze(2) * self.hidden_size**-0.5
            weights = gated_attention(gates[:, t], scores, there[:, t]).unsqueeze(1)  # B 1 S
            before = (weights @ memory).squeeze(1)
            now, now_cell = lstm_step(torch.addmm(step, before, weight),
                                      (weights @ torch.stack(cells[t : t + S], 1)).squeeze(1))
            hiddens.append(now)
            cells.append(now_cell)
        return torch.stack(hiddens[S:], 1), torch.stack(hiddens, 1), torch.stack(cells, 1)


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
        self.features_layer = nn.Linear(hidden_size, embed_dim)
        for layer in (self.distance_layer, self.next_distance_layer):
            nn.init.ones_(layer.bias)  # a ReLU that starts at 0 for all words has no gradient

    def initial_state(self, batch_size: int) -> PRPNState:
        """No words before."""
        like = self.features_layer.weight
        states = tuple(like.new_zeros(batch_size, self.slots, self.hidden_size) for _ in self.layers)
        return PRPNState(
            like.new_zeros(batch_size, self.lookback, self.embed_dim), like.new_zeros(batch_size, self.slots),
            torch.zeros(batch_size, self.slots, dtype=torch.bool, device=like.device), states, states,
        )

    def distances(self, vectors: Tensor) -> Tensor:
        """B T of word vectors B (L + T) E."""
        found = self.convolution(vectors.transpose(1, 2)).relu().transpose(1, 2)
        return self.distance_layer(found).squeeze(2).relu()

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
        gates = distance_gates(distances[:, self.slots :], past[:, :-1], self.inverse_temperature)
        hidden, kept, cells = inputs, [], []
        for number, layer in enumerate(self.layers):
            if number:
                hidden = variational_dropout(hidden, self.hidden_dropout, self.training)
            hidden, all_hidden, all_cells = layer(
                hidden, gates, present[:, :-1], state.hidden[number], state.cell[number]
            )
            kept.append(all_hidden)
            cells.append(all_cells)
        features = self._predict(hidden, kept[-1], past[:, 1:], present[:, 1:])
        S = self.slots
        after = PRPNState(
            vectors[:, vectors.size(1) - self.lookback :], distances[:, -S:], there[:, -S:],
            tuple(x[:, -S:] for x in kept), tuple(x[:, -S:] for x in cells),
        )
        return features, after, {"distances": distances[:, S:]}

    def _predict(self, hidden: Tensor, memory: Tensor, past: Tensor, there: Tensor) -> Tensor:
        """B T E from the top layer's states B T D, and B (S + T) D with those before; past, there: B T S."""
        gates = distance_gates(self.next_distance_layer(hidden).squeeze(2).relu(), past, self.inverse_temperature)
        slots = memory.unfold(1, self.slots, 1)[:, 1:]  # B T D S, the step's own state last
        scores = (self.key_layer(hidden).unsqueeze(2) @ slots).squeeze(2) * self.hidden_size**-0.5
        reading = (slots @ gated_attention(gates, scores, there).unsqueeze(3)).squeeze(3)
        both = variational_dropout(torch.cat([reading, hidden], 2), self.hidden_dropout, self.training)
        return self.features_layer(self.combine_layer(both).relu()).tanh()


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
