"""What attention to a window of recent tokens shares: a ring of keys and values, and their reading."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.attention.base import Reading
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.ops.dot_product import softmax_attention
from seqstruct.ops.local_attention import ring_positions, ring_unrolled, ring_write, window_attention
from seqstruct.ops.masking import clear_padding, reordered


class Ring(NamedTuple):
    """key, value: B H L D, token p in cell p mod L; count: B long, real tokens so far."""

    key: Tensor
    value: Tensor
    count: Tensor


class WindowAttention(MultiHeadAttention):
    """Softmax over n tokens, `dilation` apart, of which the newest is the query's own; at an encoder too.

    Padding takes no place in the window, and its own reading is of no account: zeros, or after the last token of a
    pass what the window holds then.  Options of all: `slots`, n, and `empty_slots`, whether slots before the
    first token take part in the softmax, with key and value 0 (eq. 5.4 read literally), or are left out.
    `dropout` of the shape is not used.  O(T n C) time, O(n dilation C) state.
    """

    State = Ring
    unidirectional = True

    @property
    def dilation(self) -> int:
        """Tokens from one slot to the next."""
        return 1

    @property
    def cells(self) -> int:
        """L."""
        return (self.config.slots - 1) * self.dilation + 1

    def initial_state(self, batch_size: int) -> Ring:
        """A ring of zeros."""
        like, dim = self.k_proj.weight, self.shape.embed_dim // self.shape.num_heads
        ring = like.new_zeros(batch_size, self.shape.num_heads, self.cells, dim)
        return Ring(ring, ring.clone(), torch.zeros(batch_size, dtype=torch.long, device=like.device))

    def write(self, state: Ring, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> Ring:
        """Put keys and values B S C in the place of the oldest; padding is passed over."""
        key, value = clear_padding(padding_mask, key, value)
        keys, values = self._heads(self.k_proj(key)), self._heads(self.v_proj(value))
        if padding_mask is not None:
            order = padding_mask.long().argsort(dim=1, stable=True)
            keys, values = (reordered(x, order) for x in (keys, values))
        return self._put(state, keys, values, padding_mask)

    def read(
        self, state: Ring, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        """Softmax over the slots for queries B T C, all from the same memory."""
        place = ring_positions(state.count, self.cells)
        visible = (state.count.unsqueeze(1) - 1 - place) % self.dilation == 0
        if not self.config.empty_slots:
            visible = visible & (place >= 0)
        queries = self._heads(self.q_proj(query))
        key, value = (x.to(queries.dtype) for x in (state.key, state.value))
        output = softmax_attention(queries, key, value, visible[:, None, None])
        output = self.out_proj(output.transpose(1, 2).flatten(2))
        return Reading(output.masked_fill((state.count == 0).view(-1, 1, 1), 0.0))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding_mask: Tensor | None = None,
        state: Ring | None = None,
        *,
        position: Tensor | None = None,
        need_weights: bool = False,
        carry: object = None,
    ) -> tuple[Reading, Ring | None]:
        """All queries at once, in blocks."""
        query, key, value = self.cleared(padding_mask, query, key, value)
        if query.size(1) != key.size(1):
            raise ValueError(f"{self.name}: {query.size(1)} queries for {key.size(1)} keys; left to right they pair up")
        resumed = state is not None
        if state is None:
            state = self.initial_state(query.size(0))
        queries, keys, values = (
            self._heads(layer(x)) for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        if padding_mask is not None:
            order = padding_mask.long().argsort(dim=1, stable=True)
            queries, keys, values = (reordered(x, order) for x in (queries, keys, values))
        reach = self.cells - 1
        past = [ring_unrolled(x, state.count, reach).to(keys.dtype) for x in (state.key, state.value)]
        before = torch.arange(-reach, 0, device=key.device) >= -state.count.unsqueeze(1)
        output = window_attention(
            queries,
            torch.cat([past[0], keys], 2),
            torch.cat([past[1], values], 2),
            self.config.slots,
            self.dilation,
            torch.ones_like(before) if self.config.empty_slots else before,
        )
        if padding_mask is not None:
            output = reordered(output, order.argsort(1))
        output = self.out_proj(output.transpose(1, 2).flatten(2))
        if resumed or padding_mask is not None:
            state = self._put(state, keys, values, padding_mask)
        if padding_mask is not None:
            # Padding after the last token reads what is there at the end; no use is made of other padding.
            last = (~padding_mask).flip(1).cummax(1).values.flip(1)  # B T, a token stands here or later
            ended = self.read(state, query).output
            output = torch.where(padding_mask.unsqueeze(-1), ended.masked_fill(last.unsqueeze(-1), 0.0), output)
        return Reading(output), state if resumed else None

    @staticmethod
    def _put(state: Ring, keys: Tensor, values: Tensor, padding_mask: Tensor | None) -> Ring:
        """keys, values: B H S D with all real tokens before the padding."""
        new = keys.size(2) if padding_mask is None else (~padding_mask).sum(1)
        count = state.count + new
        dtype = state.key.dtype
        key = ring_write(state.key, keys.to(dtype), state.count, count)
        return Ring(key, ring_write(state.value, values.to(dtype), state.count, count), count)
