"""What the transformers share: options, and the loading of checkpoints with other attention.

fairseq's types are read at run time: no postponed annotations here.
"""

from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel

from seqstruct.bridge.swapped_attention import adapt_state_dict
from seqstruct.models.presets import PLAN_HELP

INITIALIZATIONS = ChoiceEnum(["fairseq", "uniform"])


@dataclass
class LayerOptions(FairseqDataclass):
    """How layers spare memory."""

    ffn_chunks: int = field(
        default=1,
        metadata={
            "help": "parts of the sequence that feed-forward layers take one after another, 1 or more; inner "
            "activations of one part alone are in memory, recomputed in the backward pass"
        },
    )
    checkpoint_activations: bool = field(
        default=False, metadata={"help": "recompute activations in the backward pass: less memory, more time"}
    )


@dataclass
class EncoderOptions(LayerOptions):
    """What all models with an encoder have."""

    encoder_self_attention: str = field(default="softmax", metadata={"help": PLAN_HELP})
    dropout: float = field(default=0.1, metadata={"help": "dropout probability, in [0, 1)"})


@dataclass
class DecoderOptions(FairseqDataclass):
    """What all models with a decoder have."""

    decoder_self_attention: str = field(default="softmax", metadata={"help": PLAN_HELP})
    interleaved_positions: bool = field(
        default=False,
        metadata={"help": "sinusoidal positions as in the Transformer's paper: interleaved, counted from 0"},
    )
    initialization: INITIALIZATIONS = field(
        default="fairseq",
        metadata={"help": "fairseq's own, or 'uniform': that of Stack Attention, appendix D.2"},
    )


class StructuredModel(BaseFairseqModel):
    """A model whose attention a plan chooses; stands before fairseq's own class among the bases."""

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Flags of the flat configuration; defaults come from it or from the preset."""
        BaseFairseqModel.add_args.__func__(cls, parser)

    def upgrade_state_dict_named(self, state_dict: dict, name: str) -> None:
        """Take over stock checkpoints, and those with other attention."""
        super().upgrade_state_dict_named(state_dict, name)
        if not name:
            adapt_state_dict(self, state_dict)
