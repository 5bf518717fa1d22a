"""GPT-2, Llama and BERT of transformers with a mechanism of `seqstruct.attention` in each layer, as a plan says.

All else is transformers' own: embeddings, feed-forward layers, norms, heads and losses.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import BertForMaskedLM, GPT2LMHeadModel, LlamaForCausalLM

from seqstruct.attention import Attention, Shape, Slot, get_attention
from seqstruct.attention.dropout import Dropout
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.hf.cache import Cached, SeqstructCache
from seqstruct.hf.exchanged.configuration import (
    ExchangedBertConfig,
    ExchangedConfig,
    ExchangedGPT2Config,
    ExchangedLlamaConfig,
)
from seqstruct.hf.modeling import check_unpacked, draw_mechanisms, padding
from seqstruct.layers.transformer import attentions

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


class ExchangedAttention(nn.Module):
    """A mechanism where a block of transformers calls its self-attention.  layer: whose memory in the cache it has."""

    def __init__(self, mechanism: Attention, layer: int, dropout: float):
        super().__init__()
        self.mechanism, self.layer = mechanism, layer
        self.dropout = Dropout(dropout)

    def forward(
        self, hidden_states: Tensor, past_key_values: Any = None, padding_mask: Tensor | None = None, **_: Any
    ) -> tuple[Tensor, None]:
        """B T C for inputs B T C; padding_mask: B T bool, True = padding.  transformers' own mask is not looked at."""
        x = hidden_states
        if past_key_values is None:
            reading, _state = self.mechanism(x, x, x, padding_mask)
        else:
            reading = past_key_values.layers[self.layer].attend(self.mechanism, x, padding_mask, False)
        return self.dropout(reading.output), None


class ExchangedModel(Cached):
    """What the models share; it stands before transformers' own class among the bases.

    Their attention is made from `config.plan`, and starts from its own initial values; weights of a trained model are
    taken over by `swap_attention`.
    layers_at: where a model, this or transformers' own, has its layers; attention_at: a layer its attention;
    projections_at: transformers' own layer those of queries, keys, values and output.
    """

    attention_dropout: ClassVar[str]
    output_dropout: ClassVar[str | None] = None
    layers_at: ClassVar[str]
    attention_at: ClassVar[str]
    projections_at: ClassVar[tuple[str, ...]]

    def __init__(self, config: ExchangedConfig):
        super().__init__(config)
        shape = self.shape_of(config)
        choices = config.choices()
        for choice in choices:
            check_exchange(get_attention(choice.name), choice.config, shape)
        dropout = getattr(config, self.output_dropout) if self.output_dropout else 0.0
        for index, (block, seat) in enumerate(zip(self.blocks(self), attentions(choices, shape), strict=True)):
            self.put(block, ExchangedAttention(seat.mechanism, index, dropout))

    @classmethod
    def shape_of(cls, config: ExchangedConfig) -> Shape:
        """Sizes, heads and options of the slots; with rotary positions, which mechanisms that do not turn go without.

        Raises ValueError on an option of the configuration that mechanisms have no counterpart for.
        """
        dropout = getattr(config, cls.attention_dropout) or 0.0
        return Shape.of(config.site, config.hidden_size, config.num_attention_heads, dropout, slot=cls.slot_of(config))

    @staticmethod
    @abstractmethod
    def slot_of(config: ExchangedConfig) -> Slot:
        """Options of the slots, and refusals."""

    @classmethod
    def blocks(cls, model: nn.Module) -> nn.ModuleList:
        """The layers of a model."""
        return model.get_submodule(cls.layers_at)

    def put(self, block: nn.Module, attention: ExchangedAttention) -> None:
        """Put it in the place of a block's own attention."""
        block.set_submodule(self.attention_at, attention)

    @classmethod
    def projections(cls, block: nn.Module) -> list[tuple[Tensor, Tensor | None]]:
        """Weights out x in and biases in a block of transformers' own."""
        return [(layer.weight, layer.bias) for layer in map(block.get_submodule, cls.projections_at)]

    @property
    def attentions(self) -> list[ExchangedAttention]:
        """Of all layers, from the lowest up."""
        return [module for module in self.modules() if isinstance(module, ExchangedAttention)]

    def initialize_weights(self) -> None:
        """Mechanisms that a saved model lacks, as for another plan, start as they do; else as transformers."""
        draw_mechanisms(self)
        super().initialize_weights()


class ExchangedDecoder(ExchangedModel):
    """A language model, which generates with a cache of attention's states."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: SeqstructCache | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        **options: Any,
    ) -> Any:
        """As transformers' own.  attention_mask: B S of all tokens so far, 0 = padding.

        Raises ValueError on another kind of cache or of mask, sequences packed into one row, or if weights of
        attention are wanted.
        """
        check_unpacked(position_ids, attention_mask)
        given = input_ids if inputs_embeds is None else inputs_embeds
        padding_mask = _padding(attention_mask, given, options, self.config)
        cache = self._cache(past_key_values, use_cache)
        output = super().forward(
            input_ids=input_ids, position_ids=position_ids, past_key_values=cache, inputs_embeds=inputs_embeds,
            labels=labels, use_cache=cache is not None, logits_to_keep=logits_to_keep, padding_mask=padding_mask,
            **options,
        )
        if cache is not None:
            cache.advance(torch.arange(given.size(1), device=given.device).expand(given.shape[:2]), padding_mask)
        return output


class ExchangedGPT2LMHeadModel(ExchangedDecoder, GPT2LMHeadModel):
    """GPT-2, its packed projections taken apart."""

    config_class = ExchangedGPT2Config
    attention_dropout, output_dropout = "attn_pdrop", "resid_pdrop"
    layers_at, attention_at = "transformer.h", "attn"

    @staticmethod
    def slot_of(config: ExchangedConfig) -> Slot:
        odd = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False}
        _refuse(config, odd)
        return Slot()

    @staticmethod
    def projections(block: nn.Module) -> list[tuple[Tensor, Tensor | None]]:
        packed, output = block.attn.c_attn, block.attn.c_proj  # in x out
        weights = [*packed.weight.t().chunk(3), output.weight.t()]
        return list(zip(weights, [*packed.bias.chunk(3), output.bias], strict=True))


class ExchangedLlamaForCausalLM(ExchangedDecoder, LlamaForCausalLM):
    """Llama, with rotary positions and grouped heads."""

    config_class = ExchangedLlamaConfig
    attention_dropout = "attention_dropout"
    layers_at, attention_at = "model.layers", "self_attn"
    projections_at = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")

    @staticmethod
    def slot_of(config: ExchangedConfig) -> Slot:
        size = config.hidden_size // config.num_attention_heads
        _refuse(config, {"head_dim": size})
        rotary = config.rope_parameters
        if rotary.get("rope_type", "default") != "default" or rotary.get("partial_rotary_factor", 1.0) != 1.0:
            raise ValueError(f"rope_parameters: expected rope_type 'default', all of a head turned, got {rotary}")
        return Slot(kv_heads=config.num_key_value_heads, biases=config.attention_bias, rotary_base=rotary["rope_theta"])


class ExchangedBertForMaskedLM(ExchangedModel, BertForMaskedLM):
    """BERT with the head that fills in masked tokens."""

    config_class = ExchangedBertConfig
    attention_dropout = "attention_probs_dropout_prob"
    layers_at, attention_at = "bert.encoder.layer", "attention.self"
    projections_at = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")

    @staticmethod
    def slot_of(config: ExchangedConfig) -> Slot:
        _refuse(config, {"is_decoder": False, "add_cross_attention": False})
        return Slot()

    def put(self, block: nn.Module, attention: ExchangedAttention) -> None:
        super().put(block, attention)
        block.attention.output.dense = nn.Identity()  # the mechanism's own output projection is it

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        **options: Any,
    ) -> Any:
        """As transformers' own.  attention_mask: B T, 0 = padding.

        Raises ValueError on another kind of mask, or if weights of attention are wanted.
        """
        given = input_ids if inputs_embeds is None else inputs_embeds
        return super().forward(
            input_ids=input_ids, token_type_ids=token_type_ids, position_ids=position_ids, inputs_embeds=inputs_embeds,
            labels=labels, padding_mask=_padding(attention_mask, given, options, self.config), **options,
        )


def check_exchange(mechanism: type[Attention], config: Any, shape: Shape) -> None:
    """Raise ValueError, naming the mechanism, unless a layer of its own can hold it with projections of softmax."""
    if not issubclass(mechanism, MultiHeadAttention):
        raise ValueError(f"{mechanism.name} has no projections of heads that weights could be taken over by")
    if mechanism.carries or mechanism.shared(config, shape) is not None:
        raise ValueError(f"{mechanism.name} shares between layers what a layer of its own cannot hold")
    if mechanism.one_projection:
        raise ValueError(f"{mechanism.name} has one projection of queries and keys, which softmax's two cannot both be")


def _padding(mask: Tensor | None, given: Tensor | None, options: dict[str, Any], config: Any) -> Tensor | None:
    """B T bool, True = padding, or None; and the refusals that all models share."""
    if options.get("output_attentions", config.output_attentions):
        raise ValueError("output_attentions: expected False; exchanged attention shows no weights")
    if given is None:
        raise ValueError("expected input_ids or inputs_embeds")
    return padding(None, mask, given, 0)


def _refuse(config: Any, expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        if getattr(config, name) != value:
            raise ValueError(f"{name}: expected {value}, got {getattr(config, name)}; there is no counterpart for it")
