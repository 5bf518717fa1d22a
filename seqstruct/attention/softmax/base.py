"""What softmax and sigmoid attention share: the cache of keys and values, and weights over all of them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.attention.base import Cost, Inputs, Reading
from seqstruct.attention.multi_head import MultiHeadAttention, in_heads, repeated
from seqstruct.ops.masking import causal_mask, clear_padding, left_to_right_visible, mask_of, reordered, some
from seqstruct.ops.softmax import weighted_values


class Cache(NamedTuple):
    """Keys and values seen so far, in preallocated cells.

    key, value: B H L D, H the slot's kv_heads where the mechanism holds groups; padding: B L bool (True where a cell
    holds padding); length: B long, cells in use, the same in all rows.  Cells at or beyond `length` are free.
    In a compiled graph, where nobody can look at the length, all cells are read, free ones as padding, and nothing
    grows: a state that keys are written to has as many free cells, or no cells at all.
    """

    key: Tensor
    value: Tensor
    padding: Tensor
    length: Tensor


class DotProductAttention(MultiHeadAttention):
    """Multi-head attention by dot products (Vaswani et al. 2017, sec. 3.2.2); a subclass gives the weights."""

    State = Cache
    drops_weights = True
    cost = Cost(training="quadratic", state="linear")

    def weights(self, query: Tensor, key: Tensor, visible: Tensor | None) -> Tensor:
        """Attention weights B H T S of queries B H T D over keys B H S D."""
        raise TypeError(f"{type(self).__name__} defines no weights")

    def context(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None, causal: bool) -> Tensor:
        """B H T D without weights to show; `causal` is set only where T = S and `visible` is None.

        Keys and values are those of the cache, which may be of fewer heads.
        """
        if causal:
            visible = causal_mask(query.size(2), key.size(2), query.device)
        key, value = self._repeated(key, value)
        return self._apply_weights(self.weights(query, key, visible), value)

    def initial_state(self, batch_size: int) -> Cache:
        like = self.k_proj.weight
        empty = like.new_empty(batch_size, self.held_heads, 0, self.shape.head_dim)
        padding = torch.zeros(batch_size, 0, dtype=torch.bool, device=like.device)
        return Cache(empty, empty, padding, torch.zeros(batch_size, dtype=torch.long, device=like.device))

    def write(self, state: Cache, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> Cache:
        """Append keys and values B S C; in place beyond `length` where gradients are off."""
        key, value = clear_padding(padding_mask, key, value)
        new_key, new_value = self._keys_and_values(key, value, padding_mask, state)
        padding_mask = mask_of(padding_mask, key)
        length = state.length + key.size(1)
        if torch.compiler.is_compiling():
            return _placed(state, new_key, new_value, padding_mask)._replace(length=length)
        used = self._used(state)
        if torch.is_grad_enabled():
            return Cache(
                torch.cat([state.key[:, :, :used], new_key], 2),
                torch.cat([state.value[:, :, :used], new_value], 2),
                torch.cat([state.padding[:, :used], padding_mask], 1),
                length,
            )
        state = self._reserve(state, used, used + key.size(1), new_key.dtype)
        state.key[:, :, used : used + key.size(1)] = new_key
        state.value[:, :, used : used + key.size(1)] = new_value
        state.padding[:, used : used + key.size(1)] = padding_mask
        return state._replace(length=length)

    def read(
        self, state: Cache, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        return self._read(state, query, False, need_weights)

    def parallel(self, inputs: Inputs, state: Cache | None) -> tuple[Reading, Cache | None]:
        query, key, value, padding_mask, need_weights, _ = inputs
        if state is not None:
            state = self.write(state, key, value, padding_mask)
            return self._read(state, query, self.shape.causal, need_weights), state
        keys, values = self._keys_and_values(key, value, padding_mask, None)
        return self._read_all(query, keys, values, padding_mask, need_weights), None

    def masked(
        self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor, padding_mask: Tensor | None = None, *,
        need_weights: bool = False,
    ) -> Reading:
        """Attend from queries B T C to the keys B S key_dim that are visible to them, whatever the site's causality.

        visible: B (or 1) x 1 x T x S bool, the same for all heads.  padding_mask: B S bool, True = padding, or None.
        At self-attention fewer queries than keys are those of the last tokens.
        Raises ValueError on other shapes of queries, keys and values.
        """
        self._check_shapes(query, key, value, any_number=True)
        query, key, value, padding_mask, *_ = self.cleared(query, key, value, padding_mask)
        visible = visible if padding_mask is None else visible & ~padding_mask[:, None, None]
        keys, values = self._keys_and_values(key, value, padding_mask, None)
        return self._attend(query, keys, values, visible, False, need_weights, mask_of(padding_mask, key))

    def _read(self, state: Cache, query: Tensor, causal: bool, need_weights: bool) -> Reading:
        """Attend to the cells in use; if causal, from queries of the last T of them to those up to their own."""
        key, value, padding, _ = self._held(state)
        used = padding.size(1)
        if causal:
            visible = left_to_right_visible(padding, query.size(1))[:, None]
        else:
            visible = ~padding[:, None, None] if used and some(padding) else None
        return self._attend(query, key, value, visible, False, need_weights, padding)

    def _read_all(
        self, query: Tensor, keys: Tensor, values: Tensor, padding_mask: Tensor | None, need_weights: bool
    ) -> Reading:
        """Attend from queries B T C to keys and values B H S D of one pass."""
        causal, visible = self.shape.causal, None
        if padding_mask is not None and some(padding_mask):
            if causal:
                visible = left_to_right_visible(padding_mask, query.size(1))[:, None]
            else:
                visible = ~padding_mask[:, None, None]
            causal = False
        return self._attend(query, keys, values, visible, causal, need_weights, padding_mask)

    def _keys_and_values(
        self, key: Tensor, value: Tensor, padding_mask: Tensor | None, before: Cache | None
    ) -> tuple[Tensor, Tensor]:
        """What the cache holds of inputs B S C, each B H S D; before: the cache so far, None if it is empty."""
        held = self.held_heads
        keys, values = in_heads(self.k_proj(key), held), in_heads(self.v_proj(value), held)
        if before is None or self.shape.slot.rotary_base is None:
            return self._rotated(keys, padding_mask), values
        return self._rotated(keys, padding_mask, (~self._held(before).padding).sum(1)), values

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        visible: Tensor | None,
        causal: bool,
        need_weights: bool,
        padding: Tensor | None,
    ) -> Reading:
        """Readings for queries B T C, at self-attention the last T of S tokens, of which padding B S tells; where they
        read left to right and all see the same, each of them is the last.
        """
        if key.size(2) == 0:
            return Reading(query.new_zeros(query.shape), query.new_zeros(*key.shape[:2], query.size(1), 0))
        together = self.left_to_right and not causal and (visible is None or visible.size(2) == 1)
        heads = self._rotated(self._heads(self.q_proj(query)), padding, together=together)
        if need_weights:
            if causal:
                visible = causal_mask(query.size(1), key.size(2), query.device)[None, None]
            key, value = self._repeated(key, value)
            weights = self.weights(heads, key, visible)
            context = self._apply_weights(weights, value)
        else:
            weights = None
            context = self.context(heads, key, value, visible, causal)
        output = self.out_proj(context.transpose(1, 2).flatten(2))  # B T C
        if visible is not None:
            output = output.masked_fill(~visible.any(-1)[:, 0, :, None], 0.0)  # the bias too: nothing was read
        return Reading(output, weights)

    def _apply_weights(self, weights: Tensor, value: Tensor) -> Tensor:
        return weighted_values(weights, value, self.dropout_rate)

    def _repeated(self, *held: Tensor) -> tuple[Tensor, ...]:
        """What the cache holds, in as many heads as queries have."""
        times = self.shape.num_heads // held[0].size(1)
        return held if times == 1 else tuple(repeated(x, times, 1) for x in held)

    @classmethod
    def _held(cls, state: Cache) -> Cache:
        """The cells in use; in a compiled graph all of them, those in use last, before them padding."""
        cells = state.padding.size(1)
        if not torch.compiler.is_compiling():
            used = cls._used(state)
            return Cache(state.key[:, :, :used], state.value[:, :, :used], state.padding[:, :used], state.length)
        if not cells:
            return state
        order = (torch.arange(cells, device=state.length.device) + state.length.unsqueeze(1)) % cells
        free = order >= state.length.unsqueeze(1)  # B L
        key, value = (reordered(x, order).masked_fill(free[:, None, :, None], 0.0) for x in (state.key, state.value))
        return Cache(key, value, state.padding.gather(1, order) | free, state.length)

    @staticmethod
    def _used(state: Cache) -> int:
        return int(state.length[0]) if state.length.numel() else 0

    @staticmethod
    def _reserve(state: Cache, used: int, needed: int, dtype: torch.dtype) -> Cache:
        """A cache of at least `needed` cells; capacity doubles, so that copying is O(1) a step on average."""
        if needed <= state.padding.size(1) and state.key.dtype == dtype:
            return state
        capacity = max(needed, 2 * used)
        batch, heads, _, dim = state.key.shape
        key = state.key.new_empty(batch, heads, capacity, dim, dtype=dtype)
        value = torch.empty_like(key)
        padding = state.padding.new_zeros(batch, capacity)
        key[:, :, :used] = state.key[:, :, :used]
        value[:, :, :used] = state.value[:, :, :used]
        padding[:, :used] = state.padding[:, :used]
        return Cache(key, value, padding, state.length)


def _placed(state: Cache, key: Tensor, value: Tensor, padding: Tensor) -> Cache:
    """The cache with keys and values B H S D in its first free cells, or in cells that they bring."""
    if not state.padding.size(1):
        return Cache(key, value, padding, state.length)
    cells = state.length.unsqueeze(1) + torch.arange(padding.size(1), device=padding.device)  # B S
    places = cells[:, None, :, None].expand_as(key)
    held, given = (state.key, state.value), (key, value)
    key, value = (x.scatter(2, places, new.to(x.dtype)) for x, new in zip(held, given, strict=True))
    return Cache(key, value, state.padding.scatter(1, cells, padding), state.length)
