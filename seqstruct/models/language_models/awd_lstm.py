"""`awd_lstm`: the AWD-LSTM language model (Merity et al. 2018), and what the models built on it share.

Weight drop (sec. 2): DropConnect on the recurrent weights, one mask for a segment.  Variational dropout (sec. 4.2) of
word vectors, between layers and of the output; embedding dropout (sec. 4.3) of whole words; tied weights (sec. 4.4);
the last layer is of the size of the word vectors (sec. 4.5).  Activation regularisation (sec. 4.6) is the criterion
`regularized_cross_entropy`, the optimizer with its switch `averaged_sgd` with the schedule `averaging_switch`, segments
of random length `--random-segments` of the task `stream_language_modeling`.  Deviation: one bias vector for torch's
two, which only add up.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Tuple

from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqLanguageModel, register_model
from torch import Tensor, nn
from torch.nn import functional as F

from seqstruct.bridge.options import flag
from seqstruct.layers.recurrent import RecurrentLayer, RecurrentStack, check_rate, check_sizes, variational_dropout
from seqstruct.models.language_models.recurrent_lm import RecurrentLMDecoder
from seqstruct.models.presets import preset
from seqstruct.ops.dropout import drop
from seqstruct.ops.trees import Split, split_by_distances

EMBEDDING_BOUND = 0.1


@dataclass
class AWDLSTMConfig(FairseqDataclass):
    """One flat set of options for the command line and YAML; defaults are those of PTB in Merity et al. (2018)."""

    decoder_layers: int = flag(3, "layers, 1 or more; the last has the size of a vector")
    decoder_embed_dim: int = flag(400, "size of word vectors, 1 or more")
    hidden_size: int = flag(1150, "size of all layers but the last, 1 or more")
    dropout: float = flag(0.4, "variational, of the last layer's output; 0 <= p < 1")
    input_dropout: float = flag(0.4, "variational, of word vectors; 0 <= p < 1")
    hidden_dropout: float = flag(0.25, "variational, between layers; 0 <= p < 1")
    embedding_dropout: float = flag(0.1, "of whole words of the vocabulary; 0 <= p < 1")
    weight_dropout: float = flag(0.5, "of recurrent weights; 0 <= p < 1")


class Regularization(NamedTuple):
    """Rates of the dropouts, 0 <= p < 1."""

    output: float
    input: float
    hidden: float
    embedding: float
    weight: float

    @classmethod
    def of(cls, cfg: Any) -> "Regularization":
        """From the flat configuration.  Raises ValueError on a rate out of range."""
        names = ("dropout", "input_dropout", "hidden_dropout", "embedding_dropout", "weight_dropout")
        for name in names:
            check_rate(name, getattr(cfg, name))
        return cls(*(getattr(cfg, name) for name in names))


class RegularizedDecoder(RecurrentLMDecoder):
    """Word vectors, a `RecurrentStack` or what behaves like one, and the tied output layer, with their dropouts.

    Extra output: raw and dropped, B T C, the features before and after the output's dropout, for the criterion, and
    what the stack gives.
    """

    def __init__(self, dictionary: Any, rnn: nn.Module, embed_dim: int, rates: Regularization):
        super().__init__(dictionary, rnn, embed_dim, rates.output)
        self.rates = rates
        nn.init.uniform_(self.embed_tokens.weight, -EMBEDDING_BOUND, EMBEDDING_BOUND)
        nn.init.zeros_(self.embed_tokens.weight[dictionary.pad()])

    def encode(self, vectors: Tensor, state: Tuple[Any, ...]) -> Tuple[Tensor, Tuple[Any, ...], Dict[str, Any]]:
        """Features B T C, the state after the last step, and the extra output."""
        raw, state, extra = self.rnn(vectors, state)
        dropped = variational_dropout(raw, self.rates.output, self.training)
        return dropped, state, {"raw": raw, "dropped": dropped, **extra}

    def embed(self, tokens: Tensor) -> Tensor:
        """Word vectors B T C; in training some types are zeros in the whole batch, the others scaled up."""
        vectors = self.embed_tokens(tokens)
        if self.training and self.rates.embedding:
            kept = drop(vectors.new_ones(self.embed_tokens.num_embeddings), self.rates.embedding)
            vectors = vectors * kept[tokens].unsqueeze(2)
        return variational_dropout(vectors, self.rates.input, self.training)


class DistanceDecoder(RegularizedDecoder):
    """With syntactic distances as extra output, under the name `distances`, and trees from them."""

    distances = "distances"

    def splits(self, tokens: Tensor, add_left: bool = False) -> List[Split]:
        """The tree over the words of a sentence: N ids, without EOS.  Raises ValueError with add_left."""
        if add_left:
            raise ValueError("a tree from distances has no score of a left span")
        _, extra = self.extract_features(F.pad(tokens, (1, 0), value=self.dictionary.eos()).unsqueeze(0))
        return split_by_distances(extra[self.distances][0, 1:])


def layer_sizes(cfg: Any) -> list:
    """Input and output size of each layer.  Raises ValueError on a number below 1."""
    check_sizes(**{name: getattr(cfg, name) for name in ("decoder_layers", "decoder_embed_dim", "hidden_size")})
    sizes = [cfg.decoder_embed_dim] + [cfg.hidden_size] * (cfg.decoder_layers - 1) + [cfg.decoder_embed_dim]
    return list(zip(sizes[:-1], sizes[1:], strict=True))


@register_model("awd_lstm", dataclass=AWDLSTMConfig)
class AWDLSTMLanguageModel(FairseqLanguageModel):
    """A language model of LSTM layers, or of what a subclass builds."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "AWDLSTMLanguageModel":
        """From the flat configuration and a task with a target_dictionary; ValueError on what is out of range."""
        return cls(cls.build_decoder(cfg, task.target_dictionary, Regularization.of(cfg), layer_sizes(cfg)))

    @staticmethod
    def build_decoder(cfg: Any, dictionary: Any, rates: Regularization, sizes: list) -> RegularizedDecoder:
        """sizes: as of `layer_sizes`."""
        layers = [RecurrentLayer("lstm", *size, weight_dropout=rates.weight) for size in sizes]
        rnn = RecurrentStack(layers, hidden_dropout=rates.hidden)
        return RegularizedDecoder(dictionary, rnn, cfg.decoder_embed_dim, rates)


preset("awd_lstm", "awd_lstm_wikitext2",
       "Merity et al. 2018, section 5, WikiText-2: as on PTB but for the input's and the hidden dropout.",
       input_dropout=0.65, hidden_dropout=0.2)
