"""Gated slot attention (Zhang et al. 2024, sec. 3): slots that decay, each at a rate of its own, read by a softmax.

    K_t = diag(a_t) K_{t-1} + (1 - a_t) k_t^T,   V_t = diag(a_t) V_{t-1} + (1 - a_t) v_t^T
    o_t = V_t^T softmax(K_t q_t / sqrt(D)),   a_t = sigmoid(W x_t)^(1/8), one number for each slot of a head

This is `abc_mlp(gate=True)` with one gate for each slot, whose complement is also what a token writes there: there the
gate is one number a head, a second layer says where a token goes, and slots hold means, here they hold sums whose
weights add up to 1 at most.  Queries, keys and values are SiLU of projections, and readings pass through SiLU.
At cross-attention slots are left by the whole source, weighted towards its end where gates decay.
O((T + S) n C) time, O(n C) state, n the number of slots.
Deviations: those of the base; readings are normed in each head, not over all of them, and products divided by sqrt(D).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.delta.base import DeltaAttention, Entries
from seqstruct.attention.gate import wide_layers
from seqstruct.attention.option import option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.delta import gated_slots, write

ROOT = 8


class Slots(NamedTuple):
    """memory: B H n 2D, the slots' keys and values side by side."""

    memory: Tensor


@register_attention("gsa", sites=Site)
class GatedSlotAttention(DeltaAttention):
    """A softmax over slots that decay."""

    State = Slots
    normed = False

    class Config(DeltaAttention.Config):
        slots: int = option(64, least=1)  # n, size of the memory

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.slot_layer = nn.Linear(shape.key_dim, shape.num_heads * config.slots, bias=False)
        nn.init.xavier_uniform_(self.slot_layer.weight)

    def gates(self, key: Tensor) -> tuple[Tensor, None]:
        """log a, B S H n; the share written follows from it."""
        log_decay = F.logsigmoid(wide_layers(self.slot_layer, key)) / ROOT
        return log_decay.unflatten(-1, (self.shape.num_heads, -1)), None

    def empty(self, batch_size: int) -> Slots:
        return Slots(self._zeros(batch_size, self.config.slots, 2 * self.shape.head_dim))

    def written_to(self, state: Slots, written: Entries) -> Slots:
        key, value, log_decay, _ = written
        return Slots(write(state.memory, -torch.expm1(log_decay), torch.cat([key, value], -1), log_decay))

    def read_from(self, state: Slots, query: Tensor) -> Tensor:
        """The softmax over all slots, those not written to with key and value 0."""
        keys, values = state.memory.chunk(2, -1)
        return (query @ keys.mT).softmax(-1) @ values

    def in_turn(self, state: Slots, query: Tensor, written: Entries) -> tuple[Tensor, Slots]:
        key, value, log_decay, _ = written
        readings, memory = gated_slots(query, key, value, -torch.expm1(log_decay), log_decay, state.memory)
        return readings, Slots(memory)

    def _joined(self, readings: Tensor, gate: Tensor | None) -> Tensor:
        return super()._joined(F.silu(readings), gate)
