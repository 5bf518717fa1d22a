"""fairseq's transformer layers with attention from the plan, through the builder hooks they offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any

import torch
from fairseq.modules.quant_noise import quant_noise
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from seqstruct.attention import Attention, AttentionPlan, Choice, Shape, Site
from seqstruct.bridge.adapter import AttentionAdapter
from seqstruct.bridge.slots import norm_by_root
from seqstruct.layers.feed_forward import swiglu
from seqstruct.ops.linear import linear

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


@dataclass(frozen=True)
class PlannedLayer:
    """The attention of one layer, from the lowest: 0.  shared: modules by site and choice, of all layers."""

    plan: AttentionPlan
    layer: int
    shared: dict[tuple[Site, Choice], nn.Module | None]

    def build(self, site: Site, shape: Shape, noise: Any = None) -> AttentionAdapter:
        """The adapter that stands at a site; noise: fairseq's configuration of quantization noise.  Raises ValueError
        where it asks for noise on projections that a mechanism has not."""
        mechanism = self.plan.at(site)[self.layer].seated(shape, self.shared)
        if noise is not None and noise.pq > 0:
            self.add_noise(mechanism, noise.pq, noise.pq_block_size)
        return AttentionAdapter(mechanism, self.layer)

    def add_noise(self, mechanism: Attention, rate: float, block_size: int) -> None:
        """fairseq's quantization noise on the projections that its own attention has it on: a share of their weights'
        blocks, `rate`, is 0 in a training pass.  Raises ValueError on a mechanism without them."""
        layers = [x for name, x in mechanism.named_modules() if name.rpartition(".")[2] in PROJECTIONS]
        # in a wide type the weights are taken past the layers, whose call brings the noise
        if len(layers) < len(PROJECTIONS) or not getattr(mechanism.config, "unit_norm", True):
            raise ValueError(
                f"--quant-noise-pq: {mechanism.shape.site.value} attention, layer {self.layer}: expected a mechanism "
                f"with projections to put it on, {', '.join(PROJECTIONS)}, got {mechanism.name}"
            )
        for layer in layers:
            quant_noise(layer, rate, block_size)


def planned_layers(plan: AttentionPlan) -> Iterator[PlannedLayer]:
    """The layers from the lowest up, for fairseq's hooks, which are told no number."""
    return map(PlannedLayer, repeat(plan), count(), repeat({}))


def shape_of(cfg: Any, site: Site, embed_dim: int, memory_dim: int | None = None) -> Shape:
    """What a site of fairseq's nested configuration dictates."""
    heads = (cfg.encoder if site is Site.ENCODER_SELF else cfg.decoder).attention_heads
    return Shape.of(site, embed_dim, heads, cfg.attention_dropout, memory_dim, cfg.slots[site])


class _Deferred(nn.Linear):
    """The first layer of a feed-forward part in chunks: the last one applies it."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class _InChunks(nn.Linear):
    """The last layer of a feed-forward part, which applies all of it, to one part of the sequence after another.

    The part's inner activations are recomputed in the backward pass, so that those of one part alone are in memory.
    """

    chunks: int
    inner: Callable[[Tensor], Tensor]

    def forward(self, x: Tensor) -> Tensor:
        """x: T B C, as all outside."""
        parts = x.tensor_split(max(1, min(self.chunks, x.size(0))))
        if torch.is_grad_enabled():
            return torch.cat([checkpoint(self._part, part, use_reentrant=False) for part in parts])
        return torch.cat([self._part(part) for part in parts])

    def _part(self, x: Tensor) -> Tensor:
        return linear(self.inner(x), self.weight, self.bias)


class ChosenLayer(nn.Module):
    """What both kinds of layers share: attention of a plan, and what the options make of norms and feed-forward parts.

    A feed-forward part may be in `ffn_chunks` parts of the sequence (Kitaev et al. 2020, sec. 3), gated, and without
    biases.
    """

    def choose(self, cfg: Any, planned: PlannedLayer) -> None:
        """Before the layer is built: what its hooks read."""
        self.planned, self.ffn_chunks = planned, cfg.ffn_chunks
        self.ffn_gated, self.ffn_biases = cfg.swiglu, not cfg.no_biases

    def complete(self, cfg: Any) -> None:
        """Once the layer is built: what it has no hooks for."""
        del self.planned
        if self.ffn_gated:
            self.activation_fn = swiglu
        self.chunk()
        if cfg.rms_norm:
            norm_by_root(self)

    def build_fc1(self, input_dim: int, output_dim: int, q_noise: float, qn_block_size: int) -> nn.Module:
        kind = nn.Linear if self.ffn_chunks == 1 else _Deferred
        width = 2 * output_dim if self.ffn_gated else output_dim
        return quant_noise(kind(input_dim, width, self.ffn_biases), q_noise, qn_block_size)

    def build_fc2(self, input_dim: int, output_dim: int, q_noise: float, qn_block_size: int) -> nn.Module:
        kind = nn.Linear if self.ffn_chunks == 1 else _InChunks
        return quant_noise(kind(input_dim, output_dim, self.ffn_biases), q_noise, qn_block_size)

    def chunk(self) -> None:
        """Move what fairseq's layer does between the two linear layers into the second."""
        if self.ffn_chunks > 1:
            self.inner_activation_fn, self.activation_fn = self.activation_fn, nn.Identity()
            self.inner_dropout_module, self.activation_dropout_module = self.activation_dropout_module, nn.Identity()
            self.fc2.chunks, self.fc2.inner = self.ffn_chunks, self._inner

    def _inner(self, x: Tensor) -> Tensor:
        x = self.inner_activation_fn(linear(x, self.fc1.weight, self.fc1.bias))
        return self.inner_dropout_module(x)


class StructuredEncoderLayer(ChosenLayer, TransformerEncoderLayerBase):
    """An encoder layer whose self-attention is chosen by the plan."""

    def __init__(self, cfg: Any, planned: PlannedLayer, return_fc: bool = False):
        self.choose(cfg, planned)
        super().__init__(cfg, return_fc=return_fc)
        self.complete(cfg)

    def build_self_attention(self, embed_dim: int, cfg: Any) -> AttentionAdapter:
        return self.planned.build(Site.ENCODER_SELF, shape_of(cfg, Site.ENCODER_SELF, embed_dim), cfg.quant_noise)


class StructuredDecoderLayer(ChosenLayer, TransformerDecoderLayerBase):
    """A decoder layer whose self and cross attention are chosen by the plan."""

    def __init__(self, cfg: Any, planned: PlannedLayer, no_encoder_attn: bool = False):
        self.choose(cfg, planned)
        super().__init__(cfg, no_encoder_attn)
        self.complete(cfg)

    def attend(
        self,
        x: Tensor,
        padding_mask: Tensor | None,
        attn_mask: Tensor | None,
        incremental_state: dict[str, dict[str, Any]] | None,
    ) -> Tensor:
        """What self-attention adds to the residual stream T B C, normalised before."""
        x = self.self_attn_layer_norm(x)
        x, _ = self.self_attn(
            query=x, key=x, value=x, key_padding_mask=padding_mask, incremental_state=incremental_state,
            need_weights=False, attn_mask=attn_mask,
        )
        return self.dropout_module(x)

    def transform(self, x: Tensor) -> Tensor:
        """What the feed-forward part adds to the residual stream T B C, normalised before."""
        x = self.activation_fn(self.fc1(self.final_layer_norm(x)))
        return self.dropout_module(self.fc2(self.activation_dropout_module(x)))

    def build_self_attention(
        self, embed_dim: int, cfg: Any, add_bias_kv: bool = False, add_zero_attn: bool = False
    ) -> AttentionAdapter:
        if add_bias_kv or add_zero_attn:
            raise ValueError("structured attention has no add_bias_kv and no add_zero_attn")
        return self.planned.build(Site.DECODER_SELF, shape_of(cfg, Site.DECODER_SELF, embed_dim), cfg.quant_noise)

    def build_encoder_attention(self, embed_dim: int, cfg: Any) -> AttentionAdapter:
        shape = shape_of(cfg, Site.CROSS, embed_dim, cfg.encoder.embed_dim)
        return self.planned.build(Site.CROSS, shape, cfg.quant_noise)
