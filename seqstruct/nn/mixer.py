"""A mechanism of attention as a layer from B T C to B T C."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seqstruct.attention import Attention, Reading, Shape, Site, parse_choices
from seqstruct.attention.slot import USUAL, Slot


class MixerState(NamedTuple):
    """memory: the mechanism's own state.  position: B long, how many tokens asked it before, padding too."""

    memory: Any
    position: Tensor


def mechanism_of(plan: str, shape: Shape) -> Attention:
    """The mechanism that a plan of one layer describes.  Raises ValueError if it describes none, or does not fit."""
    sizes = shape.embed_dim, shape.key_dim, shape.value_dim, shape.num_heads
    if min(sizes) < 1:
        raise ValueError(f"expected sizes of queries, keys and values and a number of heads of 1 or more, got {sizes}")
    if not 0 <= shape.dropout < 1:
        raise ValueError(f"dropout: expected 0 or more and below 1, got {shape.dropout}")
    (choice,) = parse_choices(plan, 1, shape.site)
    return choice.build(shape)


class Mixer(nn.Module):
    """Tokens see each other (self-attention, causal or not), or another sequence, through any mechanism.

    At "decoder_self" and "encoder_self" a token sees those of its own sequence x, B T C, at the first site up to itself
    alone; at "cross" those of a memory, B S M.  Costs are those of the mechanism.
    """

    def __init__(
        self,
        plan: str,
        embed_dim: int,
        num_heads: int = 1,
        *,
        site: Site | str = Site.DECODER_SELF,
        dropout: float = 0.0,
        memory_dim: int | None = None,
        slot: Slot = USUAL,
    ):
        """plan: one mechanism with its options, "rfa(features=64)".  embed_dim: C.  num_heads: of mechanisms that have
        heads.  dropout: of attention weights, where there are any.  memory_dim: M, at "cross" (default: C).  slot:
        rotary positions, fewer heads of keys and values, and the like.

        Raises ValueError on a plan, a site or sizes that do not fit together.
        """
        super().__init__()
        site = site_of(site)
        if memory_dim is not None and site is not Site.CROSS:
            raise ValueError(f"memory_dim: expected a site of cross with it, got {site.value}")
        self.mechanism = mechanism_of(plan, Shape.of(site, embed_dim, num_heads, dropout, memory_dim, slot))

    @property
    def site(self) -> Site:
        """Where the mechanism stands."""
        return self.mechanism.shape.site

    def forward(self, x: Tensor, memory: Tensor | None = None, padding_mask: Tensor | None = None) -> Tensor:
        """B T C for x B T C; the output of `read`."""
        return self.read(x, memory, padding_mask).output

    def read(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        padding_mask: Tensor | None = None,
        *,
        need_weights: bool = False,
    ) -> Reading:
        """What each token of x reads: output B T C, weights B H T S if wanted and there are any, and what else the
        mechanism has to show.

        memory: B S M at "cross", else None.  padding_mask: B S bool of what is seen (x itself, or the memory), True =
        padding; None if there is none.  Raises ValueError on other shapes, and where a memory is missing or too much.
        """
        seen = self._seen(x, memory)
        return self.mechanism(x, seen, seen, padding_mask, need_weights=need_weights)[0]

    def initial_state(
        self, batch_size: int, memory: Tensor | None = None, padding_mask: Tensor | None = None
    ) -> MixerState:
        """The state before the first token of `step`: nothing seen, or at "cross" all of the memory B S M.

        Raises ValueError where a memory is missing, too much or of another shape, on a mask without a memory, and if
        the mechanism needs the whole sequence at once.
        """
        if not self.mechanism.streaming or self.site is Site.ENCODER_SELF:
            raise ValueError(f"{self.mechanism.name} at {self.site.value} needs the whole sequence at once: no steps")
        if memory is None and padding_mask is not None:
            raise ValueError("padding_mask: expected one of a memory alone; that of tokens goes with their step")
        state = self.mechanism.initial_state(batch_size)
        if self.site is Site.CROSS or memory is not None:
            seen, size = self._seen(None, memory), self.mechanism.shape.key_dim
            if seen.dim() != 3 or seen.shape[::2] != (batch_size, size):
                raise ValueError(f"expected a memory {batch_size} x S x {size}, got {tuple(seen.shape)}")
            state = self.mechanism.write(state, seen, seen, padding_mask)
        device = next(self.parameters(), torch.empty(0)).device if memory is None else memory.device
        return MixerState(state, torch.zeros(batch_size, dtype=torch.long, device=device))

    def step(self, x: Tensor, state: MixerState, padding_mask: Tensor | None = None) -> tuple[Tensor, MixerState]:
        """Go on from a state by the next tokens, B T C, of which one or more come at once: what they read, B T C, and
        the state after them; the old state is consumed.

        padding_mask: B T bool of x, at self-attention alone; that of a memory is `initial_state`'s.  Rows of a state
        are chosen, as beam search does, by `select_rows(state, order)`.
        """
        memory, position = state
        rows, size = len(position), self.mechanism.shape.embed_dim
        if x.dim() != 3 or x.shape[::2] != (rows, size):
            raise ValueError(f"expected tokens {rows} x T x {size}, as the state has rows, got {tuple(x.shape)}")
        after = position + x.size(1)
        if self.site is Site.CROSS:
            if padding_mask is not None:
                raise ValueError("padding_mask: expected None at cross; that of the memory goes with initial_state")
            places = position[:, None] + torch.arange(x.size(1), device=x.device)
            return self.mechanism.read(memory, x, places).output, MixerState(memory, after)
        if x.size(1) == 1:
            reading, memory = self.mechanism.step(memory, x, x, x, padding_mask)
        else:
            reading, memory = self.mechanism(x, x, x, padding_mask, memory)
        return reading.output, MixerState(memory, after)

    def _seen(self, x: Tensor | None, memory: Tensor | None) -> Tensor:
        if (memory is None) == (self.site is Site.CROSS):
            raise ValueError(f"{self.mechanism.name} at {self.site.value}: expected "
                             + ("a memory to see" if memory is None else "no memory"))
        return x if memory is None else memory


def site_of(name: Site | str) -> Site:
    """A site by its name.  Raises ValueError on another one."""
    if name not in [site.value for site in Site]:
        raise ValueError(f"site: expected one of {', '.join(site.value for site in Site)}, got {name!r}")
    return Site(name)
