"""`rnn_classifier`: stacked rational recurrences or LSTM, and a perceptron on the last hidden state (Peng 2022, 6.6.3).

Two layers of one direction, then linear, tanh, linear; no output gates (appendix E.4).  Dropout is of three kinds
(E.5.3): of word vectors, between the layers ("vertical"), and of each layer's inputs with one mask for all steps
("recurrent").  Word vectors come with the data and are fixed, or are learned.
"""

from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn

from seqstruct.bridge.options import flag
from seqstruct.layers.rational import CELLS, FORGET_BIAS, stack_of
from seqstruct.layers.recurrent import check_rate, check_sizes
from seqstruct.models.presets import preset
from seqstruct.ops.dropout import drop


@dataclass
class RNNClassifierConfig(FairseqDataclass):
    """One flat set of options for the command line and YAML."""

    cell: ChoiceEnum(CELLS) = flag(
        "F", "LSTM, GRU, RNN, or the automaton of a rational recurrence: B, B_max_plus, C or F"
    )
    layers: int = flag(2, "layers of the recurrent network, 1 or more")
    hidden_size: int = flag(200, "size of hidden states, 1 or more")
    embed_dim: int = flag(300, "size of learned word vectors, 1 or more; those in the data have their own")
    forget_bias: float = flag(FORGET_BIAS, "the biases of forget gates at the start, which open them the wider")
    embedding_dropout: float = flag(0.0, "of word vectors, 0 or more and below 1")
    vertical_dropout: float = flag(0.0, "between layers and of the last hidden state, 0 or more and below 1")
    recurrent_dropout: float = flag(0.0, "of a layer's inputs, one mask for all steps, 0 or more and below 1")


@register_model("rnn_classifier", dataclass=RNNClassifierConfig)
class RNNClassifier(BaseFairseqModel):
    """Logits of labels; learned word vectors start uniform with variance 1 / embed_dim."""

    made_for = ("text_classification",)

    def __init__(self, cfg: Any, vocabulary: int, labels: int, pad_index: int, vectors: Optional[Tensor]):
        """vectors: V x size, fixed; learned if None."""
        super().__init__()
        size = cfg.embed_dim if vectors is None else vectors.size(1)
        check_sizes(embed_dim=size)
        for name in ("embedding_dropout", "vertical_dropout", "recurrent_dropout"):
            check_rate(name, getattr(cfg, name))
        self.embedding_dropout, self.vertical_dropout = cfg.embedding_dropout, cfg.vertical_dropout
        self.embed_tokens = nn.Embedding(vocabulary, size, pad_index)
        if vectors is None:
            bound = (3 / size) ** 0.5
            nn.init.uniform_(self.embed_tokens.weight, -bound, bound)
            nn.init.zeros_(self.embed_tokens.weight[pad_index])
        else:
            self.embed_tokens.weight = nn.Parameter(vectors.clone(), requires_grad=False)
        self.rnn = stack_of(
            str(cfg.cell), cfg.layers, size, cfg.hidden_size, output_gate=False,
            dropout=cfg.vertical_dropout, variational_dropout=cfg.recurrent_dropout, forget_bias=cfg.forget_bias,
        )
        self.hidden_layer = nn.Linear(cfg.hidden_size, cfg.hidden_size)
        self.output_layer = nn.Linear(cfg.hidden_size, labels)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "RNNClassifier":
        """Raises ValueError on sizes below 1, rates outside 0 <= p < 1, and vectors that do not fit the dictionary."""
        dictionary, vectors = task.source_dictionary, task.word_vectors
        if vectors is not None and len(vectors) != len(dictionary):
            raise ValueError(f"{len(vectors)} word vectors for a dictionary of {len(dictionary)} entries")
        return cls(cfg, len(dictionary), len(task.labels), dictionary.pad(), vectors)

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, **_: Any) -> Tensor:
        """Logits B K for sentences B T long, padded on the right, of src_lengths B words, 1 or more."""
        B = src_tokens.size(0)
        vectors = drop(self.embed_tokens(src_tokens), self.embedding_dropout, self.training)
        hidden, *_ = self.rnn(vectors, self.rnn.initial_state(B))
        last = hidden[torch.arange(B, device=hidden.device), src_lengths - 1]
        last = drop(last, self.vertical_dropout, self.training)
        return self.output_layer(self.hidden_layer(last).tanh())

    def max_positions(self) -> None:
        return None


preset("rnn_classifier", "rnn_classifier_thesis",
       "Peng 2022, appendix E.5.3: two layers, the middle of Table E.1's ranges.",
       layers=2, hidden_size=200, embed_dim=300, embedding_dropout=0.25, vertical_dropout=0.25, recurrent_dropout=0.25)
