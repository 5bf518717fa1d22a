"""The protocol of an attention mechanism: a memory that is written to and read from.

The step form (`write`, then `read`) is the definition; `forward` is the parallel form of the same function.
Axis letters: B batch, T queries, S keys, C model size, H heads. Every tensor has the batch first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Mapping, NamedTuple, Optional

import torch
from torch import Tensor, nn

from seqstruct.attention.option import check_options
from seqstruct.attention.states import select_rows
from seqstruct.ops.masking import bound_padding, clear_padding


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
    """

    embed_dim: int
    key_dim: int
    value_dim: int
    num_heads: int
    dropout: float
    site: Site
    causal: bool

    @classmethod
    def of(cls, site: Site, embed_dim: int, num_heads: int = 1, dropout: float = 0.0, memory_dim: int | None = None):
        """The usual shape of a site: causal at decoder self; keys and values of memory_dim (default embed_dim)."""
        memory_dim = embed_dim if memory_dim is None else memory_dim
        return cls(embed_dim, memory_dim, memory_dim, num_heads, dropout, Site(site), Site(site) is Site.DECODER_SELF)


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


class Attention(nn.Module):
    """Base of all mechanisms: a subclass defines `Config`, `State`, `initial_state`, `write` and `read`.

    A mechanism with `streaming = False` needs the whole sequence at once and defines `forward` alone.
    With `unidirectional = True` it reads left to right at every site: output t depends on keys s <= t alone.
    With `drops_weights = True` it drops weights in training by the shape's dropout, which others do not use.
    """

    name: ClassVar[str] = ""
    sites: ClassVar[frozenset[Site]] = frozenset()
    streaming: ClassVar[bool] = True
    unidirectional: ClassVar[bool] = False
    drops_weights: ClassVar[bool] = False

    @dataclass(frozen=True)
    class Config:
        """Options of the mechanism; none by default."""

    def __init__(self, config: Any, shape: Shape):
        """config: this class's Config.  Raises ValueError at a site not declared, or on an option out of range."""
        super().__init__()
        if shape.site not in self.sites:
            raise ValueError(
                f"{self.name} does not work at {shape.site.value}; its sites: "
                + ", ".join(sorted(site.value for site in self.sites))
            )
        check_options(self.name, config)
        self.config = config
        self.shape = shape

    @property
    def left_to_right(self) -> bool:
        """Whether output t may see keys s <= t alone."""
        return self.shape.causal or self.unidirectional

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

    def read(
        self, state: Any, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        """Read for queries B T C, all from the same memory.

        position: B T long, the number of real tokens before each query, or None if unknown.
        """
        raise TypeError(f"{self.name} needs the whole sequence at once and has no step form")

    def reader(self, state: Any, *, need_weights: bool = False) -> Callable[[Tensor, Tensor | None], Reading]:
        """read(query, position) from one memory as often as wanted, for loops in which queries depend on readings.

        Overridden where what such readings share, gradients of the memory above all, can be computed once.
        """
        return functools.partial(self.read, state, need_weights=need_weights)

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
        Overridden where one pass over the memory can do all three.
        """
        query, key, value = self.cleared(padding_mask, query, key, value)
        state = state if order is None else select_rows(state, order)
        state = self.write(state, key, value, padding_mask)
        return self.read(state, query, need_weights=need_weights), state

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding_mask: Tensor | None = None,
        state: Any = None,
        *,
        position: Tensor | None = None,
        need_weights: bool = False,
        carry: Any = None,
    ) -> tuple[Reading, Any]:
        """Write all keys and read for all queries; causally (T = S) where `left_to_right`.

        query: B T C; key: B S key_dim; value: B S value_dim; padding_mask: B S bool, True = padding, or None.
        state: None for one pass from the empty memory (None comes back), else the state to go on from (its
        successor comes back).  carry: the previous layer's `Reading.carry`.
        This default loops over `write` and `read`: right for every streaming mechanism, fast for none.
        """
        query, key, value = self.cleared(padding_mask, query, key, value)
        resumed = state is not None
        if state is None:
            state = self.initial_state(query.size(0))
        if not self.left_to_right:
            state = self.write(state, key, value, padding_mask)
            reading = self.read(state, query, position, need_weights=need_weights)
            return reading, state if resumed else None
        if query.size(1) != key.size(1):
            raise ValueError(f"{self.name}: {query.size(1)} queries for {key.size(1)} keys; left to right they pair up")
        readings = []
        for t in range(query.size(1)):
            now = slice(t, t + 1)
            pad = None if padding_mask is None else padding_mask[:, now]
            state = self.write(state, key[:, now], value[:, now], pad)
            at = None if position is None else position[:, now]
            readings.append(self.read(state, query[:, now], at, need_weights=need_weights))
        return self._concatenate(readings, query), state if resumed else None

    def cleared(
        self, padding_mask: Tensor | None, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The inputs of `forward`: keys and values zero at padding and, where they are the same tokens, queries finite.

        Whatever stands at padding, NaN or not, neither values nor gradients know it.
        """
        key, value = clear_padding(padding_mask, key, value)
        if self.shape.site is not Site.CROSS and padding_mask is not None and query.shape[:2] == key.shape[:2]:
            query = bound_padding(padding_mask, query)
        return query, key, value

    def _concatenate(self, readings: list[Reading], query: Tensor) -> Reading:
        """Readings of single steps, joined along T; weights are dropped since each step saw another S."""
        if not readings:
            return Reading(query.new_zeros(query.size(0), 0, self.shape.embed_dim))
        extra = {name: torch.cat([r.extra[name] for r in readings], 1) for name in readings[0].extra}
        return Reading(torch.cat([r.output for r in readings], 1), None, extra)
