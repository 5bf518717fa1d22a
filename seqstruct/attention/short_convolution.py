"""A short convolution before the projections of self-attention (Canon layers of kind A: Allen-Zhu 2025), as a slot has
it whatever the mechanism.

    x'_t = x_t + sum_{j < K} w_j o x_{t - K + 1 + j}

Queries, keys and values are all made of x'.  Where the mechanism reads from left to right the tokens are the K last
ones, the token itself among them; elsewhere K // 2 of them lie on its left and K - 1 - K // 2 on its right, and the
sequence is needed whole.  Padding is passed over: neighbours are tokens.
Weights start uniform in (-1/sqrt(K), 1/sqrt(K)), as torch's convolutions with one group a channel do.
O(T K C) time; state O(K C) beside the mechanism's.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.base import Attention, Inputs, Reading
from seqstruct.attention.states import select_rows
from seqstruct.ops.masking import clear_padding, positions
from seqstruct.ops.short_convolution import short_convolution


class Convolved(NamedTuple):
    """memory: the mechanism's state; key, value: B K C, the inputs of the last K tokens, zeros before the first."""

    memory: Any
    key: Tensor
    value: Tensor


class ConvolvedAttention(Attention):
    """The mechanism of a slot behind its convolution; `mechanism` is what the plan names."""

    State = Convolved

    def __init__(self, mechanism: Attention):
        """Raises ValueError unless the mechanism's slot has a convolution, and all inputs one size."""
        nn.Module.__init__(self)
        shape, size = mechanism.shape, mechanism.shape.slot.short_conv
        if size < 1 or not shape.embed_dim == shape.key_dim == shape.value_dim:
            raise ValueError(f"{mechanism.name}: expected a short convolution of inputs of one size, got {shape}")
        for what in ("name", "sites", "unidirectional", "drops_weights", "queried", "carries", "config", "shape"):
            setattr(self, what, getattr(mechanism, what))
        self.streaming = mechanism.streaming and mechanism.left_to_right
        self.mechanism = mechanism
        self.weight = nn.Parameter(torch.empty(size, shape.embed_dim).uniform_(-(size**-0.5), size**-0.5))

    @property
    def left_to_right(self) -> bool:
        return self.mechanism.left_to_right

    def check_saved(self, names: Collection[str]) -> None:
        self.mechanism.check_saved({name.removeprefix("mechanism.") for name in names})

    def initial_state(self, batch_size: int) -> Convolved:
        """The mechanism's empty memory, and no tokens.  Raises TypeError where a sequence is needed whole."""
        if not self.streaming:
            raise TypeError(f"{self.name} behind a short convolution needs the whole sequence at once")
        none = self.weight.new_zeros(batch_size, *self.weight.shape)
        return Convolved(self.mechanism.initial_state(batch_size), none, none)

    def write(self, state: Convolved, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> Convolved:
        """Write keys and values B S C; padding changes nothing."""
        key, value = clear_padding(padding_mask, key, value)
        inputs, state = self._convolved(Inputs(key, key, value, padding_mask), state)
        return state._replace(memory=self.mechanism.write(state.memory, inputs.key, inputs.value, padding_mask))

    def read(
        self, state: Convolved, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        """Read for queries B T C, each in the place of the last token."""
        older = (state.key[:, :-1] * self.weight[:-1]).sum(1, keepdim=True)
        query = (query + older + query * self.weight[-1]).to(query.dtype)
        return self.mechanism.read(state.memory, query, position, need_weights=need_weights)

    def advance(self, inputs: Inputs, state: Convolved, order: Tensor | None) -> tuple[Reading, Convolved]:
        """One token, convolved with those of its row; the mechanism selects rows of its memory by itself."""
        if order is not None:
            state = Convolved(state.memory, *select_rows((state.key, state.value), order))
        inputs, state = self._convolved(inputs, state)
        reading, memory = self.mechanism.advance(inputs, state.memory, order)
        return reading, state._replace(memory=memory)

    def parallel(self, inputs: Inputs, state: Convolved | None) -> tuple[Reading, Convolved | None]:
        """All queries at once."""
        inputs, after = self._convolved(inputs, state)
        reading, memory = self.mechanism.parallel(inputs, None if state is None else state.memory)
        return reading, None if state is None else after._replace(memory=memory)

    def _convolved(self, inputs: Inputs, state: Convolved | None) -> tuple[Inputs, Convolved]:
        """Inputs behind the convolution, and the state before the mechanism has written."""
        query, key, value, padding_mask, *_ = inputs
        if state is None:
            none = self.weight.new_zeros(key.size(0), *self.weight.shape)
            state = Convolved(None, none, none)
        keys, last_key = self._convolve(key, state.key, padding_mask)
        if value is key and state.value is state.key:
            values, last_value = keys, last_key
        else:
            values, last_value = self._convolve(value, state.value, padding_mask)
        queries = keys if query is key else self._convolve(query, state.key, padding_mask)[0]
        if padding_mask is not None:
            keys, values = clear_padding(padding_mask, keys, values)
        return inputs._replace(query=queries, key=keys, value=values), Convolved(state.memory, last_key, last_value)

    def _convolve(self, x: Tensor, before: Tensor, padding_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """x: B T C with its neighbours; and the last K tokens, before: B K C among them.

        What stands at padding is, as in `read`, in the place of the last token, of which nothing is left.
        """
        size, length = len(self.weight), x.size(1)
        front, place = x, None
        if padding_mask is not None:
            order = padding_mask.long().argsort(dim=1, stable=True)
            front = _taken(x.masked_fill(padding_mask.unsqueeze(-1), 0.0), order)  # tokens first
            place = positions(padding_mask)
        if not self.left_to_right:
            sums = short_convolution(F.pad(front, (0, 0, size // 2, size - 1 - size // 2)), self.weight)
            sums = sums if place is None else _taken(sums, place.clamp(max=length - 1))
            return (x + sums).to(x.dtype), before
        tokens = torch.cat([before, front], 1)  # B K+T C
        older = short_convolution(tokens, self.weight[:-1])  # B T+2 C: of what was there after 0, 1, ..., T tokens
        if place is None:
            older, last = older[:, 1 : length + 1], tokens[:, length:]
        else:
            count = (~padding_mask).sum(1, keepdim=True)
            last = _taken(tokens, count + torch.arange(size, device=x.device))
            older = _taken(older, place + ~padding_mask)
        return (x + older + x * self.weight[-1]).to(x.dtype), last.to(before.dtype)


def _taken(x: Tensor, places: Tensor) -> Tensor:
    """x: B T C at the places B N."""
    return x.gather(1, places.unsqueeze(-1).expand(-1, -1, x.size(2)))
