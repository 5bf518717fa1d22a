"""`tree_transduction`: symbol embeddings with self-attention over them, and an LSTM decoder (Kim et al. 2017, A.2).

The source's representation of a symbol is its embedding x_j alone, or [x_j; c_j] with c_j from a mechanism of the
encoder self site: the soft parent of `dependency`, the mean of `simple`, or any other.
"""

from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoderDecoderModel, register_model
from torch import Tensor, nn

from seqstruct.attention import Choice, Shape, Site, parse_choices
from seqstruct.attention.alignment.base import AlignmentAttention, DotScore
from seqstruct.bridge.initialization import initialize_uniform
from seqstruct.bridge.options import flag
from seqstruct.bridge.passes import current_pass
from seqstruct.layers.recurrent import CellState
from seqstruct.models.presets import PLAN_HELP, preset
from seqstruct.models.rnn_translation.decoder import RecurrentDecoder
from seqstruct.models.rnn_translation.encoder import EncoderOutput, SourceEncoder
from seqstruct.models.rnn_translation.output import AttentionalOutput

STRUCTURED = "dependency(hidden_size=50, root_token=True)"
SIMPLE = "simple(hidden_size=50)"


@dataclass
class TreeTransductionModelConfig(FairseqDataclass):
    """One flat set of options for the command line and YAML."""

    encoder_self_attention: str = flag(STRUCTURED, f"{PLAN_HELP}; 'none' for symbol embeddings alone")
    hidden_size: int = flag(50, "size of embeddings and of the decoder's hidden state, 1 or more")
    dropout: float = flag(0.0, "dropout probability in the decoder, in [0, 1)")
    initialization_bound: float = flag(0.1, "bound of the uniform initialisation, > 0")
    max_source_positions: int = flag(1024, "longest source, in symbols")
    max_target_positions: int = flag(1024, "longest target, in symbols")


class BilinearAttention(AlignmentAttention):
    """A softmax over x_i W h_j, and the sum of the x_i themselves (Kim et al. 2017, A.2; Luong et al. 2015, `general`).

    Its output has the size M of the memory, not of the queries, for which reason it is no mechanism of a plan.
    """

    name = "bilinear"
    sites = frozenset({Site.CROSS})
    projects = False

    def __init__(self, shape: Shape):
        """shape: embed_dim is C and key_dim M."""
        super().__init__(self.Config(), shape)
        self.score = DotScore(shape.embed_dim, shape.embed_dim)
        self.key_layer = nn.Linear(shape.key_dim, shape.embed_dim, bias=False)

    def prepare(self, key: Tensor) -> Tensor:
        return self.key_layer(key)


class EmbeddingEncoder(SourceEncoder):
    """Embeddings of the symbols, beside what a mechanism reads for each."""

    def __init__(self, dictionary: Any, embed_dim: int, attention: Optional[Choice], max_positions: int):
        """attention: a mechanism of the encoder self site, or None."""
        super().__init__(dictionary, embed_dim, max_positions)
        self.attention = None if attention is None else attention.build(Shape.of(Site.ENCODER_SELF, embed_dim))
        self.memory_size = embed_dim if attention is None else 2 * embed_dim

    def forward(self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **_: Any) -> EncoderOutput:
        """Encode tokens B S, padded on either side; `src_lengths` is not needed."""
        padding_mask = src_tokens.eq(self.dictionary.pad())
        memory = self.embed_tokens(src_tokens)
        if self.attention is not None:
            reading, _ = self.attention(memory, memory, memory, padding_mask, need_weights=current_pass().collects)
            current_pass().take(Site.ENCODER_SELF, 0, reading)
            memory = torch.cat([memory, reading.output], 2)
        nothing = memory.new_zeros(len(memory), 0)
        return EncoderOutput(memory, padding_mask, nothing, CellState(nothing, nothing))


class TreeDecoder(RecurrentDecoder):
    """One LSTM layer that starts from zeros, and bilinear attention over a memory of any size."""

    def __init__(self, dictionary: Any, hidden_size: int, memory_size: int, dropout: float, max_positions: int):
        """memory_size: M, of the encoder's output."""
        super().__init__(
            dictionary, embed_dim=hidden_size, cell="lstm", hidden_size=hidden_size, layers=1, memory_size=memory_size,
            summary_size=0, state_size=0, attention=None, initial_state="zero", dropout=dropout,
            max_positions=max_positions,
        )
        self.attention = BilinearAttention(Shape.of(Site.CROSS, hidden_size, memory_dim=memory_size))
        self.output = AttentionalOutput(hidden_size, memory_size)


@register_model("tree_transduction", dataclass=TreeTransductionModelConfig)
class TreeTransductionModel(FairseqEncoderDecoderModel):
    """An encoder-decoder on `EmbeddingEncoder` and `TreeDecoder`."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "TreeTransductionModel":
        """From the flat configuration and a task with two dictionaries; ValueError on a plan that does not fit."""
        plan = cfg.encoder_self_attention.strip()
        attention = None if plan == "none" else parse_choices(plan, 1, Site.ENCODER_SELF)[0]
        encoder = EmbeddingEncoder(task.source_dictionary, cfg.hidden_size, attention, cfg.max_source_positions)
        decoder = TreeDecoder(
            task.target_dictionary, cfg.hidden_size, encoder.memory_size, cfg.dropout, cfg.max_target_positions
        )
        model = cls(encoder, decoder)
        initialize_uniform(model, cfg.initialization_bound)
        return model


PUBLISHED = dict(hidden_size=50, dropout=0.0, initialization_bound=0.1)
preset("tree_transduction", "tree_transduction_none",
       "Kim et al. 2017, Table 2, no attention: symbol embeddings of size 50 alone.",
       encoder_self_attention="none", **PUBLISHED)
preset("tree_transduction", "tree_transduction_simple",
       "Kim et al. 2017, Table 2, simple attention: embeddings and means of size 50.",
       encoder_self_attention=SIMPLE, **PUBLISHED)
preset("tree_transduction", "tree_transduction_structured",
       "Kim et al. 2017, Table 2, structured attention: embeddings and soft parents of size 50.",
       encoder_self_attention=STRUCTURED, **PUBLISHED)
