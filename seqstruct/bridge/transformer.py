"""fairseq's transformer encoder and decoder with attention from an `AttentionPlan`; no code of theirs is copied."""

import logging
from argparse import Namespace
from dataclasses import dataclass
from typing import Any, Mapping, Optional

import torch
from fairseq.distributed import fsdp_wrap
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase, TransformerEncoderBase
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from torch import Tensor, nn

from seqstruct.attention import AttentionPlan, Site, get_attention, parse_choices
from seqstruct.attention.short_convolution import Convolved
from seqstruct.attention.softmax.base import Cache
from seqstruct.bridge.layers import StructuredDecoderLayer, StructuredEncoderLayer, planned_layers
from seqstruct.bridge.options import spelled
from seqstruct.bridge.passes import CarriedState, passing
from seqstruct.bridge.reversible import ReversibleLayers
from seqstruct.bridge.slots import ABSOLUTE, norm_by_root, slots_of
from seqstruct.layers.positions import InterleavedSinusoidalPositions
from seqstruct.layers.vocabulary import TerminalProjection, soft_capped

logger = logging.getLogger(__name__)


@dataclass
class StructuredTransformerConfig(TransformerConfig):
    """fairseq's nested configuration, and the plan; made by `nested_config` alone."""

    attention_plan: Any = None
    interleaved_positions: bool = False
    compact_vocabulary: bool = False
    reversible: bool = False
    ffn_chunks: int = 1
    slots: Any = None
    rms_norm: bool = False
    swiglu: bool = False
    no_biases: bool = False
    logit_soft_cap: Optional[float] = None
    stack_to_output: bool = False


UNSUPPORTED = (
    "cross_self_attention", "base_layers", "decoder_layers_to_keep", "decoder_xformers_att_config",
    "encoder_xformers_att_config",
)


def nested_config(flat: Any) -> StructuredTransformerConfig:
    """fairseq's nested configuration from the flat one of a model, with its plan strings parsed.

    Raises ValueError on a plan that does not fit, or on an option that structured attention has no meaning for.
    """
    for option in UNSUPPORTED:
        if getattr(flat, option, None):
            raise ValueError(f"{spelled(option)} does not go with an attention plan")
    if getattr(flat, "offload_activations", False):  # as in fairseq, of checkpointed ones
        flat.checkpoint_activations = True
    chunks = getattr(flat, "ffn_chunks", 1)
    if chunks < 1:
        raise ValueError(f"--ffn-chunks is 1 or more, not {chunks}")
    if chunks > 1 and getattr(flat, "scale_fc", False):
        raise ValueError("--ffn-chunks does not go with --scale-fc")
    if getattr(flat, "reversible", False):
        _refuse_beside("reversible", flat, NOT_REVERSIBLE)
    if getattr(flat, "interleaved_positions", False):
        _refuse_beside("interleaved-positions", flat, ("encoder_learned_pos", "decoder_learned_pos"))
    encoder_layers, decoder_layers = getattr(flat, "encoder_layers", 0), flat.decoder_layers
    plan = AttentionPlan(
        parse_choices(getattr(flat, "encoder_self_attention", "softmax"), encoder_layers, Site.ENCODER_SELF),
        parse_choices(flat.decoder_self_attention, decoder_layers, Site.DECODER_SELF),
        parse_choices(getattr(flat, "cross_attention", "softmax"), decoder_layers, Site.CROSS),
    )
    if getattr(flat, "checkpoint_activations", False):
        _refuse_handing_on(plan)
        _refuse_beside("checkpoint-activations", flat, ("quant_noise_pq",))  # a recomputation would draw it once more
    if getattr(flat, "stack_to_output", False):
        if not stack_layers(plan):
            raise ValueError("--stack-to-output: no layer of decoder self-attention has a stack")
        _refuse_beside("stack-to-output", flat, ("decoder_layerdrop", "checkpoint_activations", "reversible"))
    _warn_of_dropout(plan, getattr(flat, "attention_dropout", 0.0))
    config = StructuredTransformerConfig.from_namespace(flat)
    config.decoder.input_dim = flat.decoder_input_dim or flat.decoder_embed_dim
    config.decoder.output_dim = flat.decoder_output_dim or flat.decoder_embed_dim
    config.attention_plan, config.slots = plan, slots_of(flat, plan)
    config.no_token_positional_embeddings |= config.slots[Site.DECODER_SELF].rotary_base is not None
    return config


def encoder_config(options: Mapping[str, Any]) -> StructuredTransformerConfig:
    """The same of an encoder alone; options: the flat ones, by name.  Raises ValueError as `nested_config` does.

    Rotary positions stand in the place of those that the model has otherwise.
    """
    if str(options.get("rotary", "none")) != "none":
        options = {**options, **dict.fromkeys(ABSOLUTE, False)}
    size = options["encoder_embed_dim"]
    decoder = dict(decoder_layers=1, decoder_self_attention="softmax", decoder_embed_dim=size, decoder_input_dim=size,
                   decoder_output_dim=size)
    return nested_config(Namespace(**{**options, **decoder}))


NOT_REVERSIBLE = (
    "decoder_normalize_after", "decoder_layerdrop", "checkpoint_activations", "scale_fc", "scale_attn", "scale_heads",
    "scale_resids", "quant_noise_pq",
)


def _refuse_beside(chosen: str, flat: Any, options: tuple[str, ...]) -> None:
    for option in options:
        if getattr(flat, option, None):
            raise ValueError(f"{spelled(option)} does not go with --{chosen}")


def _refuse_handing_on(plan: AttentionPlan) -> None:
    """A layer that is recomputed by itself has no gradient through what it hands on beside its output."""
    names = [choice.name for choice in plan.at(Site.ENCODER_SELF) if get_attention(choice.name).hands_on]
    if len(names) > 1:
        raise ValueError(f"--checkpoint-activations does not go with two layers of {names[0]}, which hand on a memory")


def stack_layers(plan: AttentionPlan) -> list[int]:
    """The layers of decoder self-attention that read a stack."""
    return [i for i, choice in enumerate(plan.at(Site.DECODER_SELF)) if get_attention(choice.name).stacked]


def _warn_of_dropout(plan: AttentionPlan, dropout: float) -> None:
    """Say which mechanisms do not use the dropout of attention weights, if there is any."""
    names = {choice.name for site in plan for choice in site if not get_attention(choice.name).drops_weights}
    if dropout and names:
        ignoring = ", ".join(sorted(names))
        logger.warning("attention_dropout is %g, and these mechanisms of the plan do not use it: %s", dropout, ignoring)


def _wrap(layer: nn.Module, cfg: Any) -> nn.Module:
    if cfg.checkpoint_activations:
        return fsdp_wrap(checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations), min_num_params=0)
    return fsdp_wrap(layer, min_num_params=cfg.min_params_to_wrap)


class StructuredEncoder(TransformerEncoderBase):
    """A transformer encoder whose layers are chosen by the plan."""

    def __init__(self, cfg: StructuredTransformerConfig, dictionary: Any, embed_tokens: nn.Module):
        self.planned = planned_layers(cfg.attention_plan)
        super().__init__(cfg, dictionary, embed_tokens)
        del self.planned
        if cfg.rms_norm:
            norm_by_root(self)
        if cfg.interleaved_positions and self.embed_positions is not None:
            self.embed_positions = InterleavedSinusoidalPositions(
                cfg.max_source_positions, cfg.encoder.embed_dim, self.padding_idx
            )

    def build_encoder_layer(self, cfg: StructuredTransformerConfig) -> nn.Module:
        """The hook of fairseq's encoder; layers are asked for from the lowest up."""
        return _wrap(StructuredEncoderLayer(cfg, next(self.planned), self.return_fc), cfg)

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, list[Tensor]]:
        with passing(carries={}):
            return super().forward(*args, **kwargs)


class StructuredDecoder(TransformerDecoderBase):
    """A transformer decoder whose layers are chosen by the plan.

    As a language model it can carry the memories of its self-attention from segment to segment of a stream (Peng 2022,
    section 4.4.1): with `carried`, segments give what one long pass gives, but for absolute positions, which begin anew
    in each segment, so that none beyond a segment's length is ever met; the thesis does not say what it does with them.
    Positions that a mechanism counts by itself go on.  A layer that LayerDrop leaves out keeps its memory as it is.
    """

    def __init__(
        self, cfg: StructuredTransformerConfig, dictionary: Any, embed_tokens: nn.Module, no_encoder_attn: bool = False
    ):
        self.planned = planned_layers(cfg.attention_plan)
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn)
        del self.planned
        if cfg.rms_norm:
            norm_by_root(self)
        if cfg.stack_to_output:
            self.stack_layers = stack_layers(cfg.attention_plan)
            sizes = len(self.stack_layers) * cfg.decoder.embed_dim, self.output_embed_dim
            self.stack_projection = nn.Linear(*sizes, bias=False)
        if cfg.reversible:
            for layer in self.layers:
                mechanism = layer.self_attn.mechanism
                if getattr(mechanism.config, "redraw", 0):
                    raise ValueError(
                        f"{mechanism.name} attention with --reversible: its random vectors may not change between a "
                        "pass and its recomputation; give redraw=0"
                    )
            self.layers = ReversibleLayers(self.layers)
        if cfg.interleaved_positions and self.embed_positions is not None:
            self.embed_positions = InterleavedSinusoidalPositions(
                cfg.max_target_positions, cfg.decoder.embed_dim, self.padding_idx
            )

    def build_output_projection(self, cfg: StructuredTransformerConfig, dictionary: Any, embed_tokens: nn.Module):
        if cfg.compact_vocabulary:
            self.output_projection = TerminalProjection(dictionary, self.output_embed_dim)
        else:
            super().build_output_projection(cfg, dictionary, embed_tokens)

    def output_layer(self, features: Tensor, **options: Any) -> Tensor:
        """As fairseq's; with a cap, `soft_capped`."""
        logits, cap = super().output_layer(features, **options), self.cfg.logit_soft_cap
        return logits if cap is None else soft_capped(logits, cap)

    def build_decoder_layer(self, cfg: StructuredTransformerConfig, no_encoder_attn: bool = False) -> nn.Module:
        """The hook of fairseq's decoder; layers are asked for from the lowest up."""
        return _wrap(StructuredDecoderLayer(cfg, next(self.planned), no_encoder_attn), cfg)

    def initial_state(self, batch_size: int) -> tuple[Any, ...]:
        """The empty memory of each layer's self-attention.  Memories are of a fixed size, but for stacks, which
        grow with the stream, the nondeterministic one up to its max_length.

        Raises ValueError where a memory cannot be carried: the mechanism has no step form or keeps all keys of the
        stream, or activations are recomputed, which would need the memories that were there before.
        """
        if self.cfg.checkpoint_activations:
            raise ValueError("--checkpoint-activations does not go with a state carried from segment to segment")
        if self.cfg.reversible:
            raise ValueError("--reversible does not go with a state carried from segment to segment")
        states = []
        for layer in self.layers.children():  # iterating would leave out what LayerDrop does
            mechanism = layer.self_attn.mechanism
            if not mechanism.streaming:
                raise ValueError(f"{mechanism.name} attention has no memory to carry from segment to segment")
            states.append(mechanism.initial_state(batch_size))
            memory = states[-1].memory if isinstance(states[-1], Convolved) else states[-1]
            if isinstance(memory, Cache):
                raise ValueError(
                    f"{mechanism.name} attention cannot be carried from segment to segment: it would keep every key of "
                    "the stream; mechanisms with a memory of their own can, such as rfa, linear or abc_mlp"
                )
        return tuple(states)

    def forward(
        self, prev_output_tokens: Tensor, *args: Any, carried: Optional[CarriedState] = None, **options: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """As fairseq's; carried: where the memories come from and go to, for a segment of a stream."""
        if carried is None:
            return super().forward(prev_output_tokens, *args, **options)
        memories = list(carried.get(self, prev_output_tokens.size(0)))
        with passing(memories=memories):
            output = super().forward(prev_output_tokens, *args, **options)
        carried.put(self, tuple(memories))
        return output

    def extract_features(self, *args: Any, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        """As fairseq's; with `stack_to_output` a projection of what the stacks gave is added to the features."""
        if not self.cfg.stack_to_output:
            with passing(carries={}):
                return super().extract_features(*args, **kwargs)
        with passing(carries={}, outputs={}) as now:
            features, extra = super().extract_features(*args, **kwargs)
        read = torch.cat([now.outputs[layer] for layer in self.stack_layers], -1)
        return features + self.stack_projection(read), extra
