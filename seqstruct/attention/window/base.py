"""What attention to a window of tokens shares: two memories, a ring of recent tokens and all of them, and readings."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention.base import Cost, Inputs, Reading
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.ops.masking import clear_padding, mask_of, positions, reordered
from seqstruct.ops.memory import ring_positions, ring_unrolled, ring_write, window_attention
from seqstruct.ops.rotary import rotated
from seqstruct.ops.softmax import softmax_attention


class Ring(NamedTuple):
    """key, value: B H L D, token p in cell p mod L; count: B long, real tokens so far."""

    key: Tensor
    value: Tensor
    count: Tensor


class Tokens(NamedTuple):
    """key, value: B H S D; padding: B S bool, True = padding."""

    key: Tensor
    value: Tensor
    padding: Tensor


class WindowAttention(MultiHeadAttention):
    """Softmax over n tokens, `dilation` apart: up to the query's own at a decoder, around it at an encoder.

    At an encoder n // 2 slots lie on the left of the query's own and n - 1 - n // 2 on its right.
    Padding takes no place in the window, and its own reading is of no account: zeros, or at a decoder after the last
    token of a pass what the window holds then.  Options of all: `slots`, n, and `empty_slots`, whether slots before the
    first token and after the last take part in the softmax, with key and value 0 (eq. 5.4 read literally), or are left
    out.  `dropout` of the shape is not used.  O(T n C) time; state O(n dilation C), or O(S C) at an encoder.
    """

    State = Ring  # at an encoder Tokens
    rotates = True
    cost = Cost(training="linear", state="constant")

    @property
    def dilation(self) -> int:
        """Tokens from one slot to the next."""
        return 1

    @property
    def cells(self) -> int:
        """L, the cells of a ring."""
        return (self.config.slots - 1) * self.dilation + 1

    @property
    def behind(self) -> int:
        """Slots on the left of the query's own."""
        return self.config.slots - 1 if self.shape.causal else self.config.slots // 2

    def initial_state(self, batch_size: int) -> Ring | Tokens:
        """A ring of zeros, or no tokens."""
        like, dim = self.k_proj.weight, self.shape.head_dim
        cells = like.new_zeros(batch_size, self.shape.num_heads, self.cells if self.shape.causal else 0, dim)
        if not self.shape.causal:
            return Tokens(cells, cells, torch.zeros(batch_size, 0, dtype=torch.bool, device=like.device))
        return Ring(cells, cells.clone(), torch.zeros(batch_size, dtype=torch.long, device=like.device))

    def write(
        self, state: Ring | Tokens, key: Tensor, value: Tensor, padding_mask: Tensor | None = None
    ) -> Ring | Tokens:
        """Put keys and values B S C in the place of the oldest, or behind all others; padding is passed over."""
        key, value = clear_padding(padding_mask, key, value)
        keys, values = self._heads(self.k_proj(key)), self._heads(self.v_proj(value))
        keys = self._rotated(keys, padding_mask, self._count(state))
        if not self.shape.causal:
            return self._append(state, keys, values, padding_mask)
        if padding_mask is not None:
            order = padding_mask.long().argsort(dim=1, stable=True)
            keys, values = (reordered(x, order) for x in (keys, values))
        return self._put(state, keys, values, padding_mask)

    def read(
        self, state: Ring | Tokens, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        """Softmax over the slots for queries B T C: all from the same ring, or those of the last T tokens."""
        queries = self._heads(self.q_proj(query))
        if not self.shape.causal:
            return self._read_around(state, queries)
        if self.shape.slot.rotary_base is not None:
            queries = rotated(queries, state.count.unsqueeze(1) - 1, self.shape.slot.rotary_base)
        place = ring_positions(state.count, self.cells)
        visible = (state.count.unsqueeze(1) - 1 - place) % self.dilation == 0
        if not self.config.empty_slots:
            visible = visible & (place >= 0)
        key, value = (x.to(queries.dtype) for x in (state.key, state.value))
        output = softmax_attention(queries, key, value, visible[:, None, None])
        return self._join(output, (state.count == 0).unsqueeze(1))

    def parallel(self, inputs: Inputs, state: Ring | Tokens | None) -> tuple[Reading, Ring | Tokens | None]:
        query, key, value, padding_mask, *_ = inputs
        resumed = state is not None
        queries, keys, values = (
            self._heads(layer(x)) for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        before = self._count(state) if resumed else None
        keys = self._rotated(keys, padding_mask, before)
        if not self.shape.causal:
            if resumed:
                state = self._append(state, keys, values, padding_mask)
                return self._read_around(state, queries), state
            return self._forward_around(self._rotated(queries, padding_mask), keys, values, padding_mask), None
        queries = self._rotated(queries, padding_mask, before)
        if state is None:
            state = self.initial_state(query.size(0))
        if padding_mask is not None:
            order = padding_mask.long().argsort(dim=1, stable=True)
            queries, keys, values = (reordered(x, order) for x in (queries, keys, values))
        reach = self.cells - 1
        past = [ring_unrolled(x, state.count, reach).to(keys.dtype) for x in (state.key, state.value)]
        there = torch.arange(-reach, key.size(1), device=key.device) >= -state.count.unsqueeze(1)
        output = self._in_blocks(queries, torch.cat([past[0], keys], 2), torch.cat([past[1], values], 2), there)
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
        return Reading(output), state

    def _forward_around(self, queries: Tensor, keys: Tensor, values: Tensor, padding_mask: Tensor | None) -> Reading:
        """Each token B H T D with those on both sides."""
        length = queries.size(2)
        padding = mask_of(padding_mask, queries[:, 0])
        order = padding.long().argsort(dim=1, stable=True)
        before, after = self.behind * self.dilation, (self.config.slots - 1 - self.behind) * self.dilation
        place = torch.arange(-before, length + after, device=queries.device)
        there = (place >= 0) & (place < (~padding).sum(1, keepdim=True))  # B R+T
        keys, values = (
            F.pad(reordered(x, order), (0, 0, before, after)).masked_fill(~there[:, None, :, None], 0.0)
            for x in (keys, values)
        )
        output = self._in_blocks(reordered(queries, order), keys, values, there)
        return self._join(reordered(output, order.argsort(1)), padding)

    def _read_around(self, state: Tokens, queries: Tensor) -> Reading:
        """By the definition, all pairs: queries B H T D of the last T tokens."""
        padding, slots = state.padding, self.config.slots
        queries = self._rotated(queries, padding)
        place, last = positions(padding), padding.size(1) - queries.size(2)
        offsets = (torch.arange(slots, device=queries.device) - self.behind) * self.dilation
        seen = place[:, last:, None] + offsets  # B T n, the tokens in the slots
        visible = (seen.unsqueeze(3) == place[:, None, None]).any(2) & ~padding[:, None]  # B T S
        empty = (seen < 0) | (seen >= (~padding).sum(1)[:, None, None])
        visible = torch.cat([visible, empty & self.config.empty_slots], 2).unsqueeze(1)
        key, value = (F.pad(x, (0, 0, 0, slots)).to(queries.dtype) for x in (state.key, state.value))
        return self._join(softmax_attention(queries, key, value, visible), padding[:, last:])

    def _in_blocks(self, queries: Tensor, keys: Tensor, values: Tensor, there: Tensor) -> Tensor:
        there = torch.ones_like(there) if self.config.empty_slots else there
        return window_attention(queries, keys, values, self.config.slots, self.dilation, there)

    def _join(self, output: Tensor, blind: Tensor) -> Reading:
        """B T C from heads B H T D, zeros where blind, B T or B 1 bool."""
        return Reading(self.out_proj(output.transpose(1, 2).flatten(2)).masked_fill(blind.unsqueeze(-1), 0.0))

    @staticmethod
    def _count(state: Ring | Tokens) -> Tensor:
        """B long, real tokens so far."""
        return state.count if isinstance(state, Ring) else (~state.padding).sum(1)

    @staticmethod
    def _append(state: Tokens, keys: Tensor, values: Tensor, padding_mask: Tensor | None) -> Tokens:
        return Tokens(
            torch.cat([state.key.to(keys.dtype), keys], 2),
            torch.cat([state.value.to(values.dtype), values], 2),
            torch.cat([state.padding, mask_of(padding_mask, keys[:, 0])], 1),
        )

    @staticmethod
    def _put(state: Ring, keys: Tensor, values: Tensor, padding_mask: Tensor | None) -> Ring:
        """keys, values: B H S D with all real tokens before the padding."""
        new = keys.size(2) if padding_mask is None else (~padding_mask).sum(1)
        count = state.count + new
        dtype = state.key.dtype
        key = ring_write(state.key, keys.to(dtype), state.count, count)
        return Ring(key, ring_write(state.value, values.to(dtype), state.count, count), count)
