"""What attention with bounded memory shares (Peng 2022, eq. 5.3 to 5.5): the slots, how they are written and read."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention.base import Cost, Inputs, Reading
from seqstruct.attention.kernel.base import wide
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.ops.masking import clear_padding, fails, mask_of, positions, some
from seqstruct.ops.memory import (
    BoundedMemory,
    anything_written,
    bounded_memory,
    causal_bounded_memory,
    empty_bounded_memory,
)


class SlotState(NamedTuple):
    """memory: the slots, see BoundedMemory; position: B long, real tokens so far (kept where the rule needs them)."""

    memory: BoundedMemory
    position: Tensor


class Written(NamedTuple):
    """Keys ready to be written: key B H S D, value B H S E, control B H S N, and each row's log-decay B H, or None."""

    key: Tensor
    value: Tensor
    control: Tensor
    log_decay: Tensor | None


class BoundedMemoryAttention(MultiHeadAttention):
    """Multi-head attention to a fixed number of slots; a subclass gives the controls, that is what is written where.

    Options of all: `slots`, their number n, and `empty_slots`, whether slots that nothing was written to take part in
    the softmax (eq. 5.4 and 5.5 read literally) or are left out.  Projections bear the names of softmax attention's;
    as there products of queries and keys are divided by sqrt(D), which equation 5.4 leaves out.
    There are no weights to show or to drop: `dropout` of the shape is not used.
    O((T + S) n C) time, O(n C) state.  Everything between the projections is computed in float32 at least.
    """

    State = SlotState
    cost = Cost(training="linear", state="constant")
    means: ClassVar[bool] = False  # slots hold means, controls are logarithms; otherwise sums
    positional: ClassVar[bool] = False  # controls depend on how many real tokens came before

    def control(self, key: Tensor, heads: Tensor, position: Tensor | None) -> Tensor:
        """B H S n, for inputs B S C, projected keys B H S D and, where `positional`, positions B S (0 at padding)."""
        raise TypeError(f"{type(self).__name__} defines no control")

    def control_given(
        self, memory: BoundedMemory, key: Tensor, heads: Tensor, position: Tensor | None, padding: Tensor | None
    ) -> Tensor:
        """The same, where it depends on what the memory holds, or on which keys are padding (B S bool or None)."""
        return self.control(key, heads, position)

    def gate_logits(self, key: Tensor) -> Tensor | None:
        """B H S for inputs B S C, or None without a gate; for means alone."""
        return None

    def initial_state(self, batch_size: int) -> SlotState:
        dim, like = self.shape.head_dim, self.k_proj.weight
        memory = empty_bounded_memory(batch_size, self.shape.num_heads, self.config.slots, dim, dim, like)
        return SlotState(memory, torch.zeros(batch_size, dtype=torch.long, device=like.device))

    def write(self, state: SlotState, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> SlotState:
        key, value = clear_padding(padding_mask, key, value)
        written, position = self._written(state, key, value, padding_mask)
        with torch.autocast(key.device.type, enabled=False):
            memory = bounded_memory.write(state.memory, written.key, written.value, written.control, self.means)
            return SlotState(self._decayed(memory, written), position)

    def read(
        self, state: SlotState, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        queries = self._heads(self.q_proj(query))
        with torch.autocast(query.device.type, enabled=False):
            output = bounded_memory.read(state.memory, wide(queries), self.config.empty_slots)
        return self._join(output, anything_written(state.memory).any(1, keepdim=True), query.dtype)

    def advance(self, inputs: Inputs, state: SlotState, order: Tensor | None) -> tuple[Reading, SlotState]:
        query, key, value, padding_mask, *_ = inputs
        position = state.position if order is None else state.position.index_select(0, order)
        written, count = self._written(state._replace(position=position), key, value, padding_mask)
        queries = self._heads(self.q_proj(query))
        with torch.autocast(query.device.type, enabled=False):
            output, memory = bounded_memory.step(
                state.memory, order, wide(queries), *written[:3], self.means, self.config.empty_slots
            )
            memory = self._decayed(memory, written)
        seen = anything_written(memory).any(1, keepdim=True)
        return self._join(output, seen, query.dtype), SlotState(memory, count)

    def parallel(self, inputs: Inputs, state: SlotState | None) -> tuple[Reading, SlotState]:
        if not self.left_to_right:
            return super().parallel(inputs, state)
        query, key, value, padding_mask, *_ = inputs
        state = self.initial_state(query.size(0)) if state is None else state
        written, count = self._written(state, key, value, padding_mask)
        seen = self._seen(state.memory, written.control)
        queries = self._heads(self.q_proj(query))
        with torch.autocast(query.device.type, enabled=False):
            output, memory = causal_bounded_memory(
                state.memory, wide(queries), *written[:3], self.means, self.config.empty_slots
            )
            state = SlotState(self._decayed(memory, written), count)
        return self._join(output, seen, query.dtype), state

    def _written(
        self, state: SlotState, key: Tensor, value: Tensor, padding_mask: Tensor | None
    ) -> tuple[Written, Tensor]:
        keys, values = self._heads(self.k_proj(key)), self._heads(self.v_proj(value))
        place, count = None, state.position
        if self.positional:
            pads = mask_of(padding_mask, key)
            place = (count.unsqueeze(1) + positions(pads)).masked_fill(pads, 0)
            count = count + (~pads).sum(1)
        with torch.autocast(key.device.type, enabled=False):
            keys, log_decay = wide(keys), None
            control = self.control_given(state.memory, key, keys, place, padding_mask)
            gate = self.gate_logits(key)
            pad = None if padding_mask is None else padding_mask.unsqueeze(1)  # B 1 S
            if gate is not None:
                # A decay of all that is in a mean cancels, so older keys are lowered by raising newer ones.
                log_gate = F.logsigmoid(gate.double())
                log_gate = log_gate if pad is None else log_gate.masked_fill(pad, 0.0)
                decay = log_gate.cumsum(-1)
                control = control + (F.logsigmoid(-gate) - decay).unsqueeze(-1)
                log_decay = decay[..., -1] if decay.size(-1) else decay.new_zeros(decay.shape[:2])
            if pad is not None:
                control = control.masked_fill(pad.unsqueeze(-1), -math.inf if self.means else 0.0)
        return Written(keys, wide(values), control, log_decay), count

    @staticmethod
    def _decayed(memory: BoundedMemory, written: Written) -> BoundedMemory:
        if written.log_decay is None:
            return memory
        total = memory.log_total
        blank = total == bounded_memory.LOWEST
        total = (total + written.log_decay.unsqueeze(-1)).to(total.dtype)
        return memory._replace(log_total=total.masked_fill(blank, bounded_memory.LOWEST))

    def _seen(self, memory: BoundedMemory, control: Tensor) -> Tensor:
        """B T bool: whether anything was written at or before each step, in any head."""
        before = anything_written(memory).any(1, keepdim=True)  # B 1
        nothing = -math.inf if self.means else 0.0
        first = before | (control[:, :, :1] != nothing).any(-1).any(1)
        if control.size(2) == 0 or not some(~first):
            return first.expand(-1, control.size(2))
        return before | (control != nothing).any(-1).any(1).cummax(1).values

    def _join(self, output: Tensor, seen: Tensor, dtype: torch.dtype) -> Reading:
        """B T C from heads B H T E; where nothing was read there is no bias either."""
        output = self.out_proj(output.transpose(1, 2).flatten(2).to(dtype))
        return Reading(output.masked_fill(~seen.unsqueeze(-1), 0.0))


def check_length(name: str, position: Tensor, length: int) -> None:
    """Raise ValueError if a position (any shape, from 0) lies at or beyond `length`."""
    if fails(position >= length, f"{name}: its memory is laid out for {length} tokens"):
        most = int(position.max()) + 1
        raise ValueError(f"{name}: a sequence of {most} tokens or more; its memory is laid out for {length}")


def one_hot(slots: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """Controls (..., count) that write into the slot of that index, and nowhere if it is `count` or more."""
    return (slots.unsqueeze(-1) == torch.arange(count, device=slots.device)).to(dtype)
