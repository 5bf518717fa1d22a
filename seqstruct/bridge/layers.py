"""fairseq's transformer layers with attention from the plan, through the builder hooks they offer."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase

from seqstruct.attention import AttentionPlan, Choice, Shape, Site, get_attention
from seqstruct.bridge.adapter import AttentionAdapter


class LayerChoices(NamedTuple):
    """What stands in one layer: build(site, shape) makes the adapter."""

    build: Callable[[Site, Shape], AttentionAdapter]


def layer_builders(plan: AttentionPlan) -> Callable[[int], LayerChoices]:
    """From a layer's index to its builder; modules shared by layers of one site and Config are made once."""
    shared: dict[tuple[Site, Choice], Any] = {}

    def builder(layer: int) -> LayerChoices:
        def build(site: Site, shape: Shape) -> AttentionAdapter:
            choice = plan.at(site)[layer]
            if (site, choice) not in shared:
                shared[site, choice] = get_attention(choice.name).shared(choice.config, shape)
            return AttentionAdapter(choice.build(shape, shared[site, choice]), layer)

        return LayerChoices(build)

    return builder


class StructuredEncoderLayer(TransformerEncoderLayerBase):
    """An encoder layer whose self-attention is chosen by the plan."""

    def __init__(self, cfg: Any, choices: LayerChoices, return_fc: bool = False):
        self.choices = choices  # read by the hook below, which the base class calls while it is built
        super().__init__(cfg, return_fc=return_fc)
        del self.choices

    def build_self_attention(self, embed_dim: int, cfg: Any) -> AttentionAdapter:
        """The hook of fairseq's layer."""
        shape = Shape.of(Site.ENCODER_SELF, embed_dim, cfg.encoder.attention_heads, cfg.attention_dropout)
        return self.choices.build(Site.ENCODER_SELF, shape)


class StructuredDecoderLayer(TransformerDecoderLayerBase):
    """A decoder layer whose self and cross attention are chosen by the plan."""

    def __init__(self, cfg: Any, choices: LayerChoices, no_encoder_attn: bool = False):
        self.choices = choices
        super().__init__(cfg, no_encoder_attn)
        del self.choices

    def build_self_attention(
        self, embed_dim: int, cfg: Any, add_bias_kv: bool = False, add_zero_attn: bool = False
    ) -> AttentionAdapter:
        """The hook of fairseq's layer."""
        if add_bias_kv or add_zero_attn:
            raise ValueError("structured attention has no add_bias_kv and no add_zero_attn")
        shape = Shape.of(Site.DECODER_SELF, embed_dim, cfg.decoder.attention_heads, cfg.attention_dropout)
        return self.choices.build(Site.DECODER_SELF, shape)

    def build_encoder_attention(self, embed_dim: int, cfg: Any) -> AttentionAdapter:
        """The hook of fairseq's layer."""
        shape = Shape.of(
            Site.CROSS, embed_dim, cfg.decoder.attention_heads, cfg.attention_dropout, cfg.encoder.embed_dim
        )
        return self.choices.build(Site.CROSS, shape)
