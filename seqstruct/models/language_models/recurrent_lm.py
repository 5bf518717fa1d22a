"""`recurrent_lm`: language models of stacked rational recurrences or LSTM, with tied embeddings (Peng 2022, 6.6.2).

For a text read as one stream by `stream_language_modeling`, with the state carried from segment to segment, and for
sentences by fairseq's `language_modeling`.  Word vectors are of the size of the hidden state and are the output layer's
weights as well.  Dropout is variational throughout (one mask for all steps of a segment), which is a deviation for
word vectors and output, where Lei et al. (2017b) draw each step anew.
"""

from bisect import bisect_right
from dataclasses import dataclass
from math import isqrt
from typing import Any, Dict, Optional, Tuple

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import FairseqLanguageModel, register_model
from torch import Tensor, nn

from seqstruct.bridge.options import flag
from seqstruct.bridge.passes import CarriedState
from seqstruct.bridge.stateful_decoder import StatefulDecoder
from seqstruct.layers.rational import CELLS, recurrent_parameters, stack_of
from seqstruct.layers.recurrent import check_rate, variational_dropout
from seqstruct.models.presets import preset
from seqstruct.ops.linear import linear


@dataclass
class RecurrentLanguageModelConfig(FairseqDataclass):
    """One flat set of options for the command line and YAML."""

    cell: ChoiceEnum(CELLS) = flag(
        "F", "LSTM, GRU, RNN, or the automaton of a rational recurrence: B, B_max_plus, C or F"
    )
    decoder_layers: int = flag(2, "layers, 1 or more")
    hidden_size: int = flag(
        0, "size of hidden states and word vectors, 1 or more; 0: the largest within parameter_budget"
    )
    parameter_budget: int = flag(10_000_000, "most parameters of the whole model, where hidden_size is 0")
    no_output_gate: bool = flag(False, "leave out the output gates of rational recurrences; an LSTM keeps its own")
    unit_vectors: bool = flag(
        False, "draw the first layer's input weights sqrt(hidden_size) times as great: word vectors are small"
    )
    dropout: float = flag(0.0, "of word vectors and of what the output layer reads, 0 or more and below 1")
    variational_dropout: float = flag(0.0, "of the inputs of each layer, 0 or more and below 1")


def hidden_size_within(budget: int, cell: str, layers: int, vocabulary: int, output_gate: bool = True) -> int:
    """The largest hidden size of a language model with tied embeddings that keeps within a number of parameters.

    vocabulary: types, special symbols counted.  Raises ValueError if not even the size 1 does.
    """

    def parameters(size: int) -> int:
        return vocabulary * (size + 1) + layers * recurrent_parameters(cell, size, size, output_gate)

    if parameters(1) > budget:
        raise ValueError(
            f"a budget of {budget} parameters is too small for {vocabulary} types: {parameters(1)} at size 1"
        )
    return bisect_right(range(1, isqrt(budget) + 1), budget, key=parameters)  # a layer has more than size^2


class RecurrentLMDecoder(StatefulDecoder):
    """Logits of the next token; word vectors start uniform with variance 1 / size, the output bias from 0."""

    def __init__(self, dictionary: Any, rnn: nn.Module, size: int, dropout: float):
        super().__init__(dictionary)
        check_rate("dropout", dropout)
        self.rnn, self.dropout = rnn, dropout
        self.embed_tokens = nn.Embedding(len(dictionary), size, dictionary.pad())
        bound = (3 / size) ** 0.5
        nn.init.uniform_(self.embed_tokens.weight, -bound, bound)
        nn.init.zeros_(self.embed_tokens.weight[dictionary.pad()])
        self.output_bias = nn.Parameter(torch.zeros(len(dictionary)))

    def initial_state(self, batch_size: int) -> Tuple[Any, ...]:
        return self.rnn.initial_state(batch_size)

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: Optional[Dict[str, Dict[str, Any]]] = None,
        carried: Optional[CarriedState] = None,
        **_: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Hidden states B T d; carried: where the state comes from and goes to, for a segment of a stream."""
        B = prev_output_tokens.size(0)
        saved = self.saved(incremental_state)
        taken = 0 if saved is None else saved["length"]
        if saved is not None:
            state = saved["state"]
        else:
            state = self.initial_state(B) if carried is None else carried.get(self, B)
        features, state, extra = self.encode(self.embed(prev_output_tokens[:, taken:]), state)
        if carried is not None:
            carried.put(self, state)
        self.save(incremental_state, state=state, length=prev_output_tokens.size(1))
        return features, {"attn": [None], **extra}

    def embed(self, tokens: Tensor) -> Tensor:
        """Word vectors B T d after dropout."""
        return variational_dropout(self.embed_tokens(tokens), self.dropout, self.training)

    def encode(self, vectors: Tensor, state: Tuple[Any, ...]) -> Tuple[Tensor, Tuple[Any, ...], Dict[str, Any]]:
        """What the output layer reads, B T d, the state after the last step, and further output by name."""
        features, state, extra = self.rnn(vectors, state)
        return variational_dropout(features, self.dropout, self.training), state, extra

    def output_layer(self, features: Tensor, **_: Any) -> Tensor:
        return linear(features, self.embed_tokens.weight, self.output_bias)

    def max_positions(self) -> int:
        return 1_000_000


@register_model("recurrent_lm", dataclass=RecurrentLanguageModelConfig)
class RecurrentLanguageModel(FairseqLanguageModel):
    """A language model on `RecurrentLMDecoder`."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "RecurrentLanguageModel":
        """Raises ValueError on what `stack_of` refuses, or a budget that is too small."""
        gate, cell = not cfg.no_output_gate, str(cfg.cell)
        size = cfg.hidden_size or hidden_size_within(
            cfg.parameter_budget, cell, cfg.decoder_layers, len(task.target_dictionary), gate
        )
        rnn = stack_of(
            cell, cfg.decoder_layers, size, size, output_gate=gate, variational_dropout=cfg.variational_dropout,
            input_deviation=size**-0.5 if cfg.unit_vectors else 1.0,
        )
        return cls(RecurrentLMDecoder(task.target_dictionary, rnn, size, cfg.dropout))


preset("recurrent_lm", "recurrent_lm_10m", "Peng 2022, Table 6.3: two layers, 10M parameters.",
       decoder_layers=2, parameter_budget=10_000_000, dropout=0.6, variational_dropout=0.2)
preset("recurrent_lm", "recurrent_lm_24m",
       "Peng 2022, Table 6.3: three layers, 24M parameters (the LSTM has two or three).",
       decoder_layers=3, parameter_budget=24_000_000, dropout=0.7, variational_dropout=0.2)
