"""What the transformers share: options, and the loading of checkpoints with other attention."""

from dataclasses import dataclass
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel

from seqstruct.bridge.options import flag
from seqstruct.bridge.swapped_attention import adapt_state_dict
from seqstruct.models.presets import PLAN_HELP

INITIALIZATIONS = ChoiceEnum(["fairseq", "uniform"])
ROTARY = ChoiceEnum(["none", "all", "hybrid"])
KV_HEADS_HELP = (
    "heads of keys and values, of which the {side}'s attention heads are a multiple, so that queries share them "
    "(default: as many as those)"
)


@dataclass
class SlotOptions(FairseqDataclass):
    """What decoders of today have in their layers; off by default, as in the Transformer of 2017."""

    rotary: ROTARY = flag(
        "none", "rotary positions of queries and keys at self-attention, in the place of absolute positions: 'all', "
                "where every mechanism of the plan has to take them, or 'hybrid', where those that take none stand "
                "beside as they are"
    )
    rotary_base: float = flag(10000.0, "base of rotary positions, above 1")
    qk_norm: bool = flag(False, "divide queries and keys by their root mean square in each head")
    short_conv: int = flag(
        0, "tokens that a convolution before the projections of self-attention sees, the token itself among them; 0 "
           "for none"
    )
    no_biases: bool = flag(False, "no biases in projections of attention and in feed-forward layers")
    rms_norm: bool = flag(False, "norms by the root of the mean square, without mean and bias")
    swiglu: bool = flag(
        False, "gated feed-forward layers, silu(Wx) * Vx, in the place of activation_fn; they have half as many "
               "parameters more at the same inner size"
    )


@dataclass
class LayerOptions(SlotOptions):
    """How layers spare memory."""

    ffn_chunks: int = flag(
        1, "parts of the sequence that feed-forward layers take one after another, 1 or more; inner activations of "
           "one part alone are in memory, recomputed in the backward pass"
    )
    checkpoint_activations: bool = flag(False, "recompute activations in the backward pass: less memory, more time")


@dataclass
class EncoderOptions(LayerOptions):
    """What all models with an encoder have."""

    encoder_self_attention: str = flag("softmax", PLAN_HELP)
    encoder_kv_heads: Optional[int] = flag(None, KV_HEADS_HELP.format(side="encoder"))
    dropout: float = flag(0.1, "dropout probability, in [0, 1)")


@dataclass
class DecoderOptions(FairseqDataclass):
    """What all models with a decoder have."""

    decoder_self_attention: str = flag("softmax", PLAN_HELP)
    decoder_input_dim: Optional[int] = flag(None, "size of decoder input embeddings (default: decoder_embed_dim)")
    decoder_output_dim: Optional[int] = flag(None, "size of decoder output embeddings (default: decoder_embed_dim)")
    decoder_kv_heads: Optional[int] = flag(None, KV_HEADS_HELP.format(side="decoder"))
    logit_soft_cap: Optional[float] = flag(
        None, "logits x become c tanh(x / c) for this c, above 0 (default: as they are)"
    )
    stack_to_output: bool = flag(
        False, "readings of stacks at decoder self-attention go to the output layer too, by a projection of their own"
    )
    interleaved_positions: bool = flag(
        False, "sinusoidal positions as in the Transformer's paper: interleaved, counted from 0"
    )
    initialization: INITIALIZATIONS = flag(
        "fairseq", "fairseq's own, or 'uniform': that of Stack Attention, appendix D.2"
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
