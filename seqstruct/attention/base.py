"""The protocol of an attention mechanism: a memory that is written to and read from.

The step form (`write`, then `read`) is the definition; `forward` is the parallel form of the same function.
Axis letters: B batch, T queries, S keys, C model size, H heads. Every tensor has the batch first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Mapping, NamedTuple, Optional

import torch
from torch import Tensor, nn

from seqstruct.attention.option import Options, check_options
from seqstruct.attention.slot import USUAL, Slot
from seqstruct.attention.states import select_rows
from seqstruct.ops.masking import bound_padding, clear_padding

GROWTHS = ("constant", "linear", "quadratic", "cubic")


class Site(str, Enum):
    """Where in a transformer an attention stands."""

    ENCODER_SELF = "encoder_self"
    DECODER_SELF = "decoder_self"
    CROSS = "cross"


@dataclass(frozen=True)
class Shape:
    """What the slot dictates to the mechanism that fills it.

    embed_dim: C, size of queries and outputs.  key_dim, value_dim: sizes of the key and value inputs.
    num_heads: H, for mechanisms with heads.  dropout: probability in [0, 1) on attention weights.
    causal: whether the output at t may depend on keys s <= t alone (True at decoder self, False elsewhere).
    slot: options of the slot.
    """

    embed_dim: int
    key_dim: int
    value_dim: int
    num_heads: int
    dropout: float
    site: Site
    causal: bool
    slot: Slot = USUAL

    @property
    def head_dim(self) -> int:
        """D, the size of a head."""
        return self.embed_dim // self.num_heads

    @classmethod
    def of(
        cls,
        site: Site,
        embed_dim: int,
        num_heads: int = 1,
        dropout: float = 0.0,
        memory_dim: int | None = None,
        slot: Slot = USUAL,
    ):
        """The usual shape of a site: causal at decoder self; keys and values of memory_dim (default embed_dim).

        slot: at cross-attention what `Slot.across` leaves of it.
        """
        site, memory_dim = Site(site), embed_dim if memory_dim is None else memory_dim
        slot = slot.across() if site is Site.CROSS else slot
        return cls(embed_dim, memory_dim, memory_dim, num_heads, dropout, site, site is Site.DECODER_SELF, slot)


class Reading(NamedTuple):
    """What one reading of the memory gives.

    output: B T C.  weights: B H T S, non-negative, or None if they were not asked for or do not exist.
    extra: tensors by name, batch first (stack actions, marginals, ...), for criterions and plots.
    carry: a value handed to the next layer's `forward(..., carry=)`, or None.
    """

    output: Tensor
    weights: Optional[Tensor] = None
    extra: Mapping[str, Tensor] = {}
    carry: Any = None


class Inputs(NamedTuple):
    """What `forward` and `step` were given, checked, with zeros at padding; every tensor has the batch first.

    query: B T C; key: B S key_dim; value: B S value_dim; padding_mask: B S bool, True = padding, or None.
    need_weights: whether the reading is to show weights.  carry: the `Reading.carry` of the layer below, or None.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    padding_mask: Tensor | None
    need_weights: bool = False
    carry: Any = None


class Cost(NamedTuple):
    """How what a mechanism takes grows with the length of a text, one of `GROWTHS` each, its options held fixed.

    training: time of a pass over the whole text.  state: memory that decoding keeps from step to step.
    """

    training: str
    state: str


class Attention(nn.Module):
    """Base of all mechanisms: a subclass defines `Config`, `State`, `initial_state`, `write` and `read`.

    What is faster than a loop over these is `parallel`, and for one token `advance`; both are proved equal to the loop.
    A mechanism with `streaming = False` needs the whole sequence at once and defines `parallel` alone.
    With `unidirectional = True` it reads left to right at every site: output t depends on keys s <= t alone.
    With `drops_weights = True` it drops weights in training by the shape's dropout, which others do not use; where
    `keeps_dropout` is set, outside of training too.
    With `queried = False` queries play no part: all that is read comes from keys and values.
    With `carries = True` it takes what the reading of the layer below carries; with `hands_on = True` its own reading
    carries more than it was given.
    With `stacked = True` it reads a stack.
    `cost` says how time and memory grow with the length of a text, nothing where it is not declared.
    With `rotates = True` rotary positions of the slot turn its queries and keys at self-attention: its scores are their
    products, or its published form turns them.
    """

    name: ClassVar[str] = ""
    sites: ClassVar[frozenset[Site]] = frozenset()
    streaming: ClassVar[bool] = True
    unidirectional: ClassVar[bool] = False
    drops_weights: ClassVar[bool] = False
    queried: ClassVar[bool] = True
    carries: ClassVar[bool] = False
    hands_on: ClassVar[bool] = False
    stacked: ClassVar[bool] = False
    rotates: ClassVar[bool] = False
    keeps_dropout: bool = False
    cost: ClassVar[Cost | None] = None

    class Config(Options):
        """Options of the mechanism; none by default."""

    def __init__(self, config: Any, shape: Shape):
        """config: this class's Config.

        Raises ValueError at a site not declared, on an option out of range, or where the slot asks for rotary positions
        that the mechanism has no use for.
        """
        super().__init__()
        check_site(self, shape.site)
        check_options(self.name, config)
        if shape.slot.rotary_base is not None:
            check_rotates(self, shape.site)
        self.config = config
        self.shape = shape

    @property
    def left_to_right(self) -> bool:
        """Whether output t may see keys s <= t alone."""
        return self.shape.causal or self.unidirectional

    @property
    def dropout_rate(self) -> float:
        """The probability with which a weight is dropped now."""
        return self.shape.dropout if self.training or self.keeps_dropout else 0.0

    @property
    def at_once(self) -> bool:
        """Whether all keys come in one `write`, of which a second is a ValueError: what is written depends on all."""
        return False

    @classmethod
    def shared(cls, config: Any, shape: Shape) -> nn.Module | None:
        """A module that all layers of one site and Config hold as `self.tied`, or None; called once for each."""
        return None

    def penalty(self) -> Tensor | None:
        """A loss on the parameters alone (scalar), added to the criterion's for each update; None if there is none."""
        return None

    def check_saved(self, names: Collection[str]) -> None:
        """Look at the names of a checkpoint's parameters at this place, before they are taken over as far as they fit.

        Raises ValueError, saying why, where they are those of an earlier form that this one cannot stand for.
        """

    def initial_state(self, batch_size: int) -> Any:
        """The empty memory: a NamedTuple of tensors with the batch first."""
        raise TypeError(f"{self.name} needs the whole sequence at once and has no step form")

    def write(self, state: Any, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> Any:
        """Take in keys B S key_dim and values B S value_dim, left to right; the old state is consumed.

        padding_mask: B S bool, True = padding (no write), or None.
        """
        raise TypeError(f"{self.name} needs the whole sequence at once and has no step form")

    def read(self, state: Any, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False) -> Reading:
        """Read for queries B T C, all from the same memory.

        position: B T long, the number of real tokens before each query, or None if unknown.
        """
        raise TypeError(f"{self.name} needs the whole sequence at once and has no step form")

    def step(
        self,
        state: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding_mask: Tensor | None = None,
        *,
        order: Tensor | None = None,
        need_weights: bool = False,
    ) -> tuple[Reading, Any]:
        """Write keys B 1 key_dim and values B 1 value_dim, then read for queries B 1 C; the old state is consumed.

        order: B long, the rows of the old state to go on from, as beam search chooses them; None for all, as they are.
        """
        return self.advance(self.cleared(query, key, value, padding_mask, need_weights), state, order)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding_mask: Tensor | None = None,
        state: Any = None,
        *,
        need_weights: bool = False,
        carry: Any = None,
    ) -> tuple[Reading, Any]:
        """Write all keys and read for all queries; causally where `left_to_right`.

        query: B T C; key: B S key_dim; value: B S value_dim, T = S at self-attention; padding_mask: B S bool, True =
        padding, or None: neither values nor gradients know what stands there.
        state: None for one pass from the empty memory (None comes back), else the state to go on from (its
        successor comes back).  carry: the `Reading.carry` of the layer below.
        Raises ValueError on other shapes, and on a state or a carry that the mechanism has no use for.
        """
        self._check_shapes(query, key, value)
        if state is not None and not self.streaming:
            raise ValueError(f"{self.name} needs the whole sequence at once and has no state to go on from")
        if carry is not None and not self.carries:
            raise ValueError(f"{self.name} takes nothing that the layer below carries")
        inputs = self.cleared(query, key, value, padding_mask, need_weights, carry)
        if key.size(1) == 0 and not self.streaming:
            return Reading(query.new_zeros(query.shape), carry=carry), None
        reading, after = self.parallel(inputs, state)
        return reading, None if state is None else after

    def parallel(self, inputs: Inputs, state: Any) -> tuple[Reading, Any]:
        """The reading of `forward`, and the state after it (of no account if `state` is None, the empty memory).

        This default loops over `write` and `read`: right for every streaming mechanism, fast for none.
        """
        query, key, value, padding_mask, need_weights, _ = inputs
        state = self.initial_state(query.size(0)) if state is None else state
        if not self.left_to_right:
            state = self.write(state, key, value, padding_mask)
            return self.read(state, query, need_weights=need_weights), state
        readings = []
        for t in range(query.size(1)):
            now = slice(t, t + 1)
            pad = None if padding_mask is None else padding_mask[:, now]
            state = self.write(state, key[:, now], value[:, now], pad)
            readings.append(self.read(state, query[:, now], need_weights=need_weights))
        if not readings:
            return Reading(query.new_zeros(query.size(0), 0, self.shape.embed_dim)), state
        # no weights: each step saw another S
        extra = {name: torch.cat([r.extra[name] for r in readings], 1) for name in readings[0].extra}
        return Reading(torch.cat([r.output for r in readings], 1), None, extra), state

    def advance(self, inputs: Inputs, state: Any, order: Tensor | None) -> tuple[Reading, Any]:
        """The reading and the state of `step`; overridden where one pass over the memory can select, write and read."""
        state = state if order is None else select_rows(state, order)
        state = self.write(state, inputs.key, inputs.value, inputs.padding_mask)
        return self.read(state, inputs.query, need_weights=inputs.need_weights), state

    def _check_shapes(self, query: Tensor, key: Tensor, value: Tensor, any_number: bool = False) -> None:
        """any_number: whether there may be as many queries as one likes, as at cross-attention."""
        shape, (batch, length) = self.shape, key.shape[:2]
        any_number = any_number or (shape.site is Site.CROSS and not self.left_to_right)
        queries = query.size(1) if any_number else length
        expected = (batch, queries, shape.embed_dim), (batch, length, shape.key_dim), (batch, length, shape.value_dim)
        if (query.shape, key.shape, value.shape) == expected:
            return
        for what, x, wanted in zip(("queries", "keys", "values"), (query, key, value), expected, strict=True):
            if x.shape != wanted:
                raise ValueError(f"{self.name}: expected {what} {wanted}, got {tuple(x.shape)}")

    def cleared(self, query: Tensor, key: Tensor, value: Tensor, padding_mask: Tensor | None, *asked: Any) -> Inputs:
        """Keys and values zero at padding and, where they are the same tokens, queries finite."""
        if padding_mask is not None:
            key, value = clear_padding(padding_mask, key, value)
            if self.queried and self.shape.site is not Site.CROSS and query.shape[:2] == key.shape[:2]:
                query = bound_padding(padding_mask, query)
        return Inputs(query, key, value, padding_mask, *asked)


def check_site(mechanism: Attention | type[Attention], site: Site) -> None:
    """Raise ValueError, naming both, if the mechanism does not declare the site."""
    if site not in mechanism.sites:
        declared = ", ".join(sorted(s.value for s in mechanism.sites))
        raise ValueError(f"{mechanism.name} does not work at {site.value}; its sites: {declared}")


def check_rotates(mechanism: Attention | type[Attention], site: Site) -> None:
    """Raise ValueError, naming the mechanism, unless rotary positions have a meaning for it at the site."""
    if site is Site.CROSS:
        raise ValueError(f"{mechanism.name}: cross-attention has no distances that rotary positions could tell")
    if not mechanism.rotates:
        raise ValueError(f"{mechanism.name} takes no rotary positions: it has no queries and keys that turn")
