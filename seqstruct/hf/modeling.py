"""What the models share: how they are built from a configuration, ties, initial values, and how layers are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from seqstruct.attention import Attention, Choice, Site
from seqstruct.hf.cache import Cached, SeqstructCache
from seqstruct.hf.configuration import SeqstructConfig
from seqstruct.layers.positions import Positions
from seqstruct.layers.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    NewTokens,
    attentions,
    count,
    plainly,
)
from seqstruct.layers.vocabulary import TerminalEmbedding, TerminalProjection, soft_capped

IGNORED = -100  # a label that nothing is learnt from


def embedding(size: int, embed_dim: int, padding_idx: int) -> nn.Embedding:
    """A table with entries of variance 1/C, and zeros for padding."""
    table = nn.Embedding(size, embed_dim, padding_idx)
    nn.init.normal_(table.weight, std=embed_dim**-0.5)
    with torch.no_grad():
        table.weight[padding_idx].zero_()
    return table


def build_encoder(config: SeqstructConfig, cls: type[Encoder]) -> Encoder:
    """The encoder of a configuration; cls: `Encoder` or what is derived from it."""
    form, front = config.form("encoder"), config.front("encoder")
    size = config.source_vocab_size or config.vocab_size
    choices = config.choices(Site.ENCODER_SELF)
    layers = [EncoderLayer(form, slot) for slot in attentions(choices[: 1 if config.tie_layers else None],
                                                              form.shape(Site.ENCODER_SELF))]
    layers = layers * len(choices) if config.tie_layers else layers
    table = embedding(size, front.embed_dim, config.pad_token_id)
    return cls(front, table, layers, final_norm=form.normalize_before)


def build_decoder(config: SeqstructConfig, table: nn.Module | None = None) -> Decoder:
    """The decoder of a configuration, with cross attention in a translation model; table: embeddings, if shared."""
    form, front = config.form("decoder"), config.front("decoder")
    own = attentions(config.choices(Site.DECODER_SELF), form.shape(Site.DECODER_SELF))
    cross: list[Any] = [None] * len(own)
    if config.is_encoder_decoder:
        cross = attentions(config.choices(Site.CROSS), form.shape(Site.CROSS))
    input_dim = config.decoder_input_dim or front.embed_dim
    if config.compact_vocabulary:
        table = TerminalEmbedding(config.symbols, input_dim)
    elif table is None:
        table = embedding(config.vocab_size, input_dim, config.pad_token_id)
    layers = [DecoderLayer(form, *slots) for slots in zip(own, cross, strict=True)]
    final_norm = form.normalize_before and not config.no_decoder_final_norm
    decoder = Decoder(front, table, layers, final_norm, reversible=config.reversible)
    output_dim = config.decoder_output_dim or front.embed_dim
    if output_dim != front.embed_dim:
        decoder.project_out_dim = nn.Linear(front.embed_dim, output_dim, bias=False)
    if config.compact_vocabulary:
        decoder.output_projection = TerminalProjection(config.symbols, output_dim)
    else:
        decoder.output_projection = nn.Linear(output_dim, config.vocab_size, bias=False)
        nn.init.normal_(decoder.output_projection.weight, std=output_dim**-0.5)
        if config.share_all_embeddings or config.share_decoder_input_output_embed:
            decoder.output_projection.weight = table.weight
    return decoder


def padding(tokens: Tensor | None, mask: Tensor | None, like: Tensor, pad: int) -> Tensor | None:
    """B T bool, True = padding, of like B T ..: where the mask B S, of all tokens so far, is 0, or, without one, where
    a token is padding; None if there is none.  Raises ValueError on a mask of another shape."""
    if mask is not None:
        rows, length = like.shape[:2]
        if mask.dim() != 2 or len(mask) != rows or mask.size(1) < length:
            raise ValueError(f"attention_mask: expected {rows} x {length}, tokens before these in front, 0 = padding, "
                             f"got {' x '.join(map(str, mask.shape))}")
        found = mask[:, mask.size(1) - length :] == 0
    elif tokens is not None:
        found = tokens == pad
    else:
        return None
    return found if bool(found.any()) else None


def check_unpacked(positions: Tensor | None, mask: Tensor | None) -> None:
    """Raise ValueError where positions B T of real tokens fall: sequences packed into one row are not told apart.

    mask: B S, of all tokens so far, 0 = padding, or None.
    """
    if positions is None or positions.size(-1) < 2:
        return
    falls = positions.diff() < 0
    if mask is not None and mask.dim() == 2:
        real = mask[:, -positions.size(-1) :] != 0
        falls = falls & real[:, 1:] & real[:, :-1]
    if bool(falls.any()):
        raise ValueError("position_ids: expected one sequence in a row, whose positions rise, got several")


def embed(stack: Encoder | Decoder, tokens: Tensor | None, embedded: Tensor | None) -> Tensor:
    """B T C of tokens B T, or what is given in their place.  Raises ValueError unless there is one of them."""
    if (tokens is None) == (embedded is None):
        raise ValueError(f"expected tokens or embeddings, got {'neither' if tokens is None else 'both'}")
    return stack.embed_tokens(tokens) if embedded is None else embedded


def cross_entropy(logits: Tensor, labels: Tensor, items: Tensor | int | None = None) -> Tensor:
    """Of labels M for logits M N, by how many items there are, None for those of the labels that count."""
    reduction, labels = "mean" if items is None else "sum", labels.to(logits.device)
    loss = F.cross_entropy(logits.float(), labels, ignore_index=IGNORED, reduction=reduction)
    return loss if items is None else loss / items


@torch.no_grad()
def draw_lacking(module: nn.Module) -> None:
    """Draw the tensors that loading a saved model left without values, as the module's constructor does."""
    lacking = {name: p for name, p in _own_tensors(module) if not getattr(p, "_is_hf_initialized", False)}
    if not lacking:
        return
    if isinstance(module, Attention):
        fresh = Choice(module.name, module.config).build(module.shape)
    elif isinstance(module, nn.Embedding):
        fresh = embedding(module.num_embeddings, module.embedding_dim, module.padding_idx)
    elif isinstance(module, nn.Linear):
        fresh = nn.Linear(module.in_features, module.out_features, module.bias is not None)
    elif isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
        fresh = type(module)(module.normalized_shape)
    elif isinstance(module, Positions):
        fresh = Positions(module.kind, module.max_positions, module.embed_dim, module.first - 1)
    else:
        return
    drawn = dict(_own_tensors(fresh))
    for name, tensor in lacking.items():
        if name in drawn:
            tensor.copy_(drawn[name])


def draw_mechanisms(model: nn.Module) -> None:
    """Draw what mechanisms lack, whole ones before their parts, which transformers would draw as modules of its own."""
    for module in model.modules():
        if isinstance(module, Attention):
            draw_lacking(module)
            for tensor in (*module.parameters(), *module.buffers()):
                tensor._is_hf_initialized = True


class SeqstructPreTrainedModel(Cached, PreTrainedModel):
    """Base of the models."""

    config_class = SeqstructConfig
    base_model_prefix = ""
    supports_gradient_checkpointing = True
    _no_split_modules = ["EncoderLayer", "DecoderLayer"]

    def finish(self) -> None:
        """Once all modules are there: find what is tied."""
        self.gradient_checkpointing = False
        self._drawn = self.device.type != "meta"
        self._tied_weights_keys = dict(_again(self.named_parameters(remove_duplicate=False)))
        self._keys_to_ignore_on_save = {name for name, _ in _again(self.named_buffers(remove_duplicate=False))}
        self.post_init()
        if self.can_generate():
            self.generation_config.suppress_tokens = [self.config.pad_token_id]  # as fairseq: no symbol of a text

    def initialize_weights(self) -> None:
        """Where a saved model is loaded, mechanisms that it lacks start as they do; all else as transformers has it."""
        if not self._drawn:
            draw_mechanisms(self)
        super().initialize_weights()

    def mark_tied_weights_as_initialized(self, loading_info: Any) -> None:
        """A tie has no values where what it is tied to was not saved."""
        lacking = set(loading_info.missing_keys)
        super().mark_tied_weights_as_initialized(loading_info)
        sources = lacking.intersection(self.all_tied_weights_keys.values())
        for name in sources:
            self.get_parameter(name)._is_hf_initialized = False
        loading_info.missing_keys |= sources

    def _init_weights(self, module: nn.Module) -> None:
        """Constructors draw initial values; this draws those that a saved model lacks, as for another plan."""
        if not self._drawn:
            draw_lacking(module)

    def _set_gradient_checkpointing(
        self, enable: bool = True, gradient_checkpointing_func: Any = checkpoint, every_n_layers: int = 1
    ) -> None:
        if every_n_layers != 1:
            raise ValueError(f"every_n_layers: expected 1, got {every_n_layers}; all layers are recomputed or none")
        options = getattr(gradient_checkpointing_func, "keywords", {})
        if enable and self.config.is_encoder_decoder and options.get("use_reentrant"):
            raise ValueError("use_reentrant: expected False, got True; gradients of the source come from every layer")
        for module in self.modules():
            if enable and isinstance(module, Attention) and getattr(module.config, "redraw", 0):
                raise ValueError(
                    f"{module.name} attention with gradient checkpointing: its random vectors may not change between a "
                    "pass and its recomputation; give redraw=0"
                )
        self.gradient_checkpointing, self._gradient_checkpointing_func = enable, gradient_checkpointing_func

    def _caller(self) -> Any:
        """How layers are called."""
        return self._gradient_checkpointing_func if self.gradient_checkpointing and self.training else plainly

    @property
    def _first(self) -> Encoder | Decoder:
        """The stack that reads the input."""
        return self.encoder if hasattr(self, "encoder") else self.decoder

    def get_input_embeddings(self) -> nn.Module:
        return self._first.embed_tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self._first.embed_tokens = value

    def get_output_embeddings(self) -> nn.Module | None:
        """The output layer, None where it is no table."""
        layer = self.decoder.output_projection if hasattr(self, "decoder") else None
        return None if isinstance(layer, TerminalProjection) else layer

    def set_output_embeddings(self, layer: nn.Module) -> None:
        self.decoder.output_projection = layer

    def resize_token_embeddings(self, *given: Any, **named: Any) -> nn.Module:
        """As transformers' own.  Raises ValueError where source and target have tables of their own, of which it would
        resize a part."""
        if self.config.is_encoder_decoder and not self.config.share_all_embeddings:
            raise ValueError("resize_token_embeddings: expected a model with share_all_embeddings, got one with tables "
                             "of source and target")
        table = super().resize_token_embeddings(*given, **named)
        if self.config.source_vocab_size is not None:
            self.config.source_vocab_size = self.config.vocab_size
        return table

    def _decode(
        self, tokens: Tensor | None, mask: Tensor | None, embedded: Tensor | None, cache: SeqstructCache | None,
        source: Tensor | None = None, source_mask: Tensor | None = None, need_weights: bool = False,
    ) -> tuple[Tensor, list[Tensor], list[Any]]:
        """Features B T C of tokens B T or of what is embedded B T C, and what `Decoder.decode` gives beside them."""
        embedded = embed(self.decoder, tokens, embedded)
        padding_mask = padding(tokens, mask, embedded, self.config.pad_token_id)
        position = count(embedded, padding_mask)
        if cache is not None:
            position = cache.advance(position, padding_mask)
        now = NewTokens(padding_mask, position, source, source_mask, need_weights)
        memories = None if cache is None else cache.layers
        features, hidden, weights = self.decoder.decode(embedded, now, memories, self._caller())
        if hasattr(self.decoder, "project_out_dim"):
            features = self.decoder.project_out_dim(features)
        return features, hidden, weights

    def _logits(self, features: Tensor) -> Tensor:
        """B T N for features B T C, capped if they are to be."""
        logits, cap = self.decoder.output_projection(features), self.config.logit_soft_cap
        return logits if cap is None else soft_capped(logits, cap)


def _again(named: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, str]]:
    """The further names of tensors that have several, and their first ones."""
    first: dict[int, str] = {}
    for name, tensor in named:
        if first.setdefault(id(tensor), name) != name:
            yield name, first[id(tensor)]


def _own_tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    """Parameters and buffers: of a mechanism those of all that it consists of, of others their own."""
    deep = isinstance(module, Attention)
    return [*module.named_parameters(recurse=deep), *module.named_buffers(recurse=deep)]
