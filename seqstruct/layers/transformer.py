"""Transformer encoders and decoders around any attention: torch alone, the batch first (Vaswani et al. 2017).

They compute what fairseq's compute, with `AttentionPlan`s in them, and their parameters bear the same names, so that
a checkpoint's are theirs.  Axis letters: B batch, T tokens, S source tokens, C model size, N vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.base import Attention, Reading, Shape, Site
from seqstruct.attention.dropout import Dropout
from seqstruct.attention.linear import Linear
from seqstruct.attention.plan import Choice
from seqstruct.attention.slot import USUAL, Slot
from seqstruct.attention.states import select_rows
from seqstruct.layers.feed_forward import swiglu
from seqstruct.layers.positions import Positions
from seqstruct.ops.masking import positions


def _gelu_by_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


EPSILON = 1e-6  # of norms by the root of the mean square
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu, "gelu": lambda x: F.gelu(x.float()).type_as(x), "gelu_fast": _gelu_by_tanh,
    "gelu_accurate": _gelu_by_tanh, "tanh": torch.tanh, "linear": lambda x: x,
}


@dataclass(frozen=True)
class LayerForm:
    """What all layers of a stack share.  embed_dim: C.  ffn_embed_dim: inner size of feed-forward parts.

    memory_dim: size of what cross attention reads; None for layers without it.  Dropouts are probabilities in [0, 1):
    of what is added to the residual stream, of attention weights, inside feed-forward parts.
    activation: one of `ACTIVATIONS`, or "swiglu", which is gated.  normalize_before: pre-norm.  slot: of attention; one
    without biases has feed-forward parts without them.  rms_norm: whether norms are by the root of the mean square.
    """

    embed_dim: int
    ffn_embed_dim: int
    num_heads: int
    memory_dim: int | None = None
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation: str = "relu"
    normalize_before: bool = False
    slot: Slot = USUAL
    rms_norm: bool = False

    def shape(self, site: Site) -> Shape:
        """That of a site of these layers."""
        memory = self.memory_dim if site is Site.CROSS else None
        return Shape.of(site, self.embed_dim, self.num_heads, self.attention_dropout, memory, self.slot)

    def norm(self) -> nn.Module:
        """A norm of model size."""
        return norm_of(self.embed_dim, self.rms_norm)


def norm_of(size: int, by_root: bool) -> nn.Module:
    """A layer norm, or one by the root of the mean square."""
    return nn.RMSNorm(size, EPSILON) if by_root else nn.LayerNorm(size)


def attentions(choices: Iterable[Choice], shape: Shape) -> list[Seat]:
    """The attention of each layer."""
    shared: dict[tuple[Site, Choice], nn.Module | None] = {}
    return [Seat(choice.seated(shape, shared)) for choice in choices]


class Seat(nn.Module):
    """Where a layer's attention stands."""

    def __init__(self, mechanism: Attention):
        super().__init__()
        self.mechanism = mechanism

    def forward(self, *inputs: Any, **options: Any) -> tuple[Reading, Any]:
        """The mechanism's."""
        return self.mechanism(*inputs, **options)


@dataclass
class LayerMemory:
    """What a decoder layer keeps from step to step: the States of its self and cross attention, None at the start.

    order: B long, the rows of self-attention's state to go on from, which the next step takes; None for all.
    """

    own: Any = None
    source: Any = None
    order: Tensor | None = None

    def select(self, order: Tensor) -> None:
        """Go on from rows order (long) of what is kept; its length may differ from the batch."""
        if self.own is not None:
            self.order = order if self.order is None else self.order.index_select(0, order)
        if self.source is not None:
            self.source = select_rows(self.source, order)

    def attend(self, mechanism: Attention, x: Tensor, padding_mask: Tensor | None, need_weights: bool) -> Reading:
        """Self-attention of new tokens B T C to all so far and each other."""
        state = mechanism.initial_state(x.size(0)) if self.own is None else self.own
        order, self.order = self.order, None
        if x.size(1) == 1:
            reading, self.own = mechanism.step(state, x, x, x, padding_mask, order=order, need_weights=need_weights)
        else:
            state = state if order is None else select_rows(state, order)
            reading, self.own = mechanism(x, x, x, padding_mask, state, need_weights=need_weights)
        return reading

    def consult(
        self, mechanism: Attention, x: Tensor, source: Tensor, source_mask: Tensor | None, position: Tensor,
        need_weights: bool,
    ) -> Reading:
        """Cross attention of tokens B T C, at position B T, to a source B S C, which is written once."""
        if self.source is None:
            self.source = mechanism.write(mechanism.initial_state(x.size(0)), source, source, source_mask)
        return mechanism.read(self.source, x, position, need_weights=need_weights)


class _Layer(nn.Module):
    """The residual stream of a layer, and its feed-forward part."""

    def __init__(self, form: LayerForm, attention: Seat):
        super().__init__()
        self.form = form
        self.self_attn = attention
        self.self_attn_layer_norm = form.norm()
        gated = form.activation == "swiglu"
        self.activation = swiglu if gated else ACTIVATIONS[form.activation]
        self.fc1 = Linear(form.embed_dim, form.ffn_embed_dim * (2 if gated else 1), form.slot.biases)
        self.fc2 = Linear(form.ffn_embed_dim, form.embed_dim, form.slot.biases)
        self.final_layer_norm = form.norm()
        self.dropout = Dropout(form.dropout)
        self.activation_dropout = Dropout(form.activation_dropout)

    def before(self, norm: nn.Module, x: Tensor) -> Tensor:
        """What a branch is given of the residual stream B T C."""
        return norm(x) if self.form.normalize_before else x

    def after(self, norm: nn.Module, x: Tensor, added: Tensor) -> Tensor:
        """The residual stream B T C after a branch."""
        x = x + self.dropout(added)
        return x if self.form.normalize_before else norm(x)

    def transform(self, x: Tensor) -> Tensor:
        """The residual stream B T C after the feed-forward part."""
        norm = self.final_layer_norm
        return self.after(norm, x, self.feed_forward(self.before(norm, x)))

    def feed_forward(self, x: Tensor) -> Tensor:
        """B T C."""
        return self.fc2(self.activation_dropout(self.activation(self.fc1(x))))


class EncoderLayer(_Layer):
    """Self-attention and a feed-forward part."""

    def forward(
        self, x: Tensor, padding_mask: Tensor | None = None, carry: Any = None, need_weights: bool = False
    ) -> tuple[Tensor, Any, Tensor | None]:
        """x: B T C; padding_mask: B T bool, True = padding.  Returns B T C, what is carried to the next layer and the
        weights B H T S or None."""
        norm = self.self_attn_layer_norm
        given = self.before(norm, x)
        taken = carry if self.self_attn.mechanism.carries else None
        reading, _ = self.self_attn(given, given, given, padding_mask, carry=taken, need_weights=need_weights)
        return self.transform(self.after(norm, x, reading.output)), reading.carry, reading.weights


class DecoderLayer(_Layer):
    """Causal self-attention, cross attention where the form has a memory_dim, and a feed-forward part."""

    def __init__(self, form: LayerForm, attention: Seat, cross: Seat | None = None):
        super().__init__(form, attention)
        if cross is not None:
            self.encoder_attn = cross
            self.encoder_attn_layer_norm = form.norm()

    def forward(
        self, x: Tensor, now: NewTokens, memory: LayerMemory | None = None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """x: B T C.  Returns B T C and the weights of self and cross attention, each B H T S or None."""
        norm = self.self_attn_layer_norm
        own = self.attend(self.before(norm, x), now, memory)
        x, weights = self.after(norm, x, own.output), None
        if now.source is not None:
            norm = self.encoder_attn_layer_norm
            cross = self.consult(self.before(norm, x), now, memory)
            x, weights = self.after(norm, x, cross.output), cross.weights
        return self.transform(x), own.weights, weights

    def attend(self, x: Tensor, now: NewTokens, memory: LayerMemory | None) -> Reading:
        """Self-attention of normalised tokens."""
        if memory is not None:
            return memory.attend(self.self_attn.mechanism, x, now.padding_mask, now.need_weights)
        return self.self_attn(x, x, x, now.padding_mask, need_weights=now.need_weights)[0]

    def consult(self, x: Tensor, now: NewTokens, memory: LayerMemory | None) -> Reading:
        """Cross attention of normalised tokens."""
        source = now.source, now.source_mask
        if memory is None and _moved(now):
            memory = LayerMemory()  # which reads at positions; one pass counts padding among the queries
        if memory is not None:
            return memory.consult(self.encoder_attn.mechanism, x, *source, now.position, now.need_weights)
        return self.encoder_attn(x, now.source, *source, need_weights=now.need_weights)[0]


@dataclass(frozen=True)
class NewTokens:
    """What all decoder layers are told of new tokens.  padding_mask: B T bool, True = padding, or None.

    position: B T long, the number of real tokens before each.  source: B S C, and source_mask B S; None without one.
    """

    padding_mask: Tensor | None
    position: Tensor
    source: Tensor | None = None
    source_mask: Tensor | None = None
    need_weights: bool = False


def _moved(now: NewTokens) -> bool:
    """Whether padding stands before a real token."""
    if now.padding_mask is None:
        return False
    places = torch.arange(now.position.size(1), device=now.position.device)
    return bool(((now.position != places) & ~now.padding_mask).any())


@dataclass(frozen=True)
class Front:
    """How tokens enter a stack.  embed_dim: C.  scaled: whether embeddings are multiplied by C^1/2.

    positions: their kind, of `seqstruct.layers.positions.KINDS`.  max_positions: how many there are.
    """

    embed_dim: int
    scaled: bool = True
    positions: str = "stacked"
    max_positions: int = 1024
    padding_idx: int = 1
    normalized: bool = False
    dropout: float = 0.0
    layerdrop: float = 0.0
    rms_norm: bool = False

    def norm(self, wanted: bool) -> nn.Module | None:
        """A norm of model size, if it is wanted."""
        return norm_of(self.embed_dim, self.rms_norm) if wanted else None


class _Stack(nn.Module):
    """Embeddings, layers, and a last normalisation."""

    def __init__(self, front: Front, embedding: nn.Module, layers: Sequence[nn.Module], final_norm: bool):
        super().__init__()
        self.front = front
        self.embed_tokens = embedding
        self.embed_positions = None
        if front.positions != "none":
            self.embed_positions = Positions(front.positions, front.max_positions, front.embed_dim, front.padding_idx)
        self.layernorm_embedding = front.norm(front.normalized)
        self.dropout = Dropout(front.dropout)
        self.project_in_dim = None
        if embedding.embedding_dim != front.embed_dim:
            self.project_in_dim = nn.Linear(embedding.embedding_dim, front.embed_dim, bias=False)
        self.layers = nn.ModuleList(layers)
        self.layer_norm = front.norm(final_norm)

    def enter(self, embedded: Tensor, position: Tensor, padding_mask: Tensor | None) -> Tensor:
        """B T C of embedded tokens at position B T; that of padding may be beyond the last, and is not looked at."""
        position = position if padding_mask is None else position.masked_fill(padding_mask, 0)
        x = embedded * math.sqrt(self.front.embed_dim) if self.front.scaled else embedded
        x = x if self.project_in_dim is None else self.project_in_dim(x)
        x = x if self.embed_positions is None else x + self.embed_positions(position).to(x.dtype)
        x = x if self.layernorm_embedding is None else self.layernorm_embedding(x)
        return self.dropout(x)

    def kept(self) -> Iterable[tuple[int, nn.Module]]:
        """The layers by number; in training without those that LayerDrop leaves out."""
        for number, layer in enumerate(self.layers):
            if not (self.training and self.front.layerdrop > 0 and float(torch.rand(())) < self.front.layerdrop):
                yield number, layer

    def leave(self, x: Tensor) -> Tensor:
        """The last layer's output B T C, normalised if it is to be."""
        return x if self.layer_norm is None else self.layer_norm(x)


Call = Callable[..., Any]  # how a layer is called: itself and its inputs, as torch.utils.checkpoint takes them


def plainly(layer: Call, *inputs: Any) -> Any:
    """What a layer gives, with all that it computed kept for the backward pass."""
    return layer(*inputs)


class Encoder(_Stack):
    """A stack of encoder layers."""

    def encode(
        self, embedded: Tensor, padding_mask: Tensor | None = None, need_weights: bool = False, call: Call = plainly
    ) -> tuple[Tensor, list[Tensor], list[Tensor | None]]:
        """Embedded tokens B T C, zero where padding_mask B T is True, as B T C; and of all layers the inputs, then the
        output, and the weights."""
        padding_mask = padding_mask if padding_mask is not None and bool(padding_mask.any()) else None
        x = self.enter(embedded, count(embedded, padding_mask), padding_mask)
        if padding_mask is not None:
            x = x.masked_fill(padding_mask.unsqueeze(-1), 0.0)
        carry, hidden, weights = None, [], []
        for _, layer in self.kept():
            hidden.append(x)
            x, carry, shown = call(layer, x, padding_mask, carry, need_weights)
            weights.append(shown)
        x = self.leave(x)
        return x, [*hidden, x], weights


class Decoder(_Stack):
    """A stack of decoder layers; `reversible` ones have two residual streams (Gomez et al. 2017), of which the mean
    leaves the stack."""

    def __init__(self, *parts: Any, reversible: bool = False, **options: Any):
        super().__init__(*parts, **options)
        self.reversible = reversible

    def decode(
        self, embedded: Tensor, now: NewTokens, memories: Sequence[LayerMemory] | None = None, call: Call = plainly
    ) -> tuple[Tensor, list[Tensor], list[tuple[Tensor | None, Tensor | None]]]:
        """Embedded tokens B T C as B T C; and of all layers the inputs, then the output, and the weights at self and
        at cross attention.  memories: of each layer, which go on; None for a pass from the beginning."""
        x = self.enter(embedded, now.position, now.padding_mask)
        if self.reversible:
            x = self._two_streams(x, now, memories)
            return x, [x], []
        hidden, weights = [], []
        for number, layer in self.kept():
            hidden.append(x)
            x, *shown = call(layer, x, now, None if memories is None else memories[number])
            weights.append(tuple(shown))
        x = self.leave(x)
        return x, [*hidden, x], weights

    def _two_streams(self, x: Tensor, now: NewTokens, memories: Sequence[LayerMemory] | None) -> Tensor:
        other = x
        for number, layer in enumerate(self.layers):
            memory = None if memories is None else memories[number]
            x = x + layer.dropout(layer.attend(layer.self_attn_layer_norm(other), now, memory).output)
            other = other + layer.dropout(layer.feed_forward(layer.final_layer_norm(x)))
        return self.leave((x + other) / 2)


def count(x: Tensor, padding_mask: Tensor | None) -> Tensor:
    """B T long: the number of real tokens before each of x B T; padding has that of what follows."""
    if padding_mask is None:
        return torch.arange(x.size(1), device=x.device).expand(x.shape[:2])
    return positions(padding_mask)
