"""What the delta rule's family shares: projections, a memory that is written left to right, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.base import Cost, Inputs, Reading, Shape, Site
from seqstruct.attention.kernel.base import wide
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.attention.option import Options
from seqstruct.attention.states import select_rows
from seqstruct.ops.delta import gated_delta_rule, write
from seqstruct.ops.masking import clear_padding
from seqstruct.ops.memory import unit_norm

EPSILON = 1e-5  # in the norm of readings


class FastWeights(NamedTuple):
    """memory: B H D D, from keys to values."""

    memory: Tensor


class Entries(NamedTuple):
    """Keys ready to be written: key and value B H S D (of several steps a token, all its keys in a row);

    log_decay B H S or B H S D, 0 at padding, or None; strength B H S, how much of a key is written, or None.
    """

    key: Tensor
    value: Tensor
    log_decay: Tensor | None = None
    strength: Tensor | None = None


class DeltaAttention(MultiHeadAttention):
    """Multi-head attention to a memory of one matrix a head, in whose order of writing the positions are.

    A subclass says what decays and how much is written.  Queries, keys and values are SiLU of projections unless
    `activated` is False, and queries and keys have norm 1 unless `normed` is, as in the papers on the delta rule.
    Readings are divided by their root mean square in each head, times a learned vector, and where `output_gate` is a
    function, times that function of a projection of the query's input.  Without biases an empty memory reads zeros.
    At self-attention memories are written and read left to right.  With `bidirectional` an encoder runs from both ends
    with the same parameters and adds the two readings, each token being in both.  At cross-attention the whole source
    is written, left to right, and every query reads what is left of it at its end: a product with the query, so that
    what is addressed is a key, never a position, and what was overwritten or has decayed is out of reach.
    There are no weights to show or to drop: `dropout` of the shape is not used.
    O((T + S) C D) time, O(C D) state.  Everything between the projections is computed in float32 at least.
    Deviations of all: short convolutions, where the slot has one, stand before the projections, not behind them.
    """

    State = FastWeights
    cost = Cost(training="linear", state="constant")
    biases = False
    output_gate: ClassVar[Callable[[Tensor], Tensor] | None] = None
    activated = normed = True
    steps = 1  # keys that a token writes

    class Config(Options):
        """Options of the whole family."""

        bidirectional: bool = False  # whether an encoder reads from both ends; the readings are summed

    def __init__(self, config: Config, shape: Shape):
        """Raises ValueError also on `bidirectional` elsewhere than at an encoder's self-attention."""
        super().__init__(config, shape)
        if config.bidirectional and shape.site is not Site.ENCODER_SELF:
            raise ValueError(f"{self.name}: bidirectional is for encoder_self, not {shape.site.value}")
        self.streaming = not config.bidirectional
        self.head_norm = nn.RMSNorm(shape.head_dim, EPSILON)
        if self.output_gate is not None:
            self.gate_proj = nn.Linear(shape.embed_dim, shape.embed_dim, bias=False)
            nn.init.xavier_uniform_(self.gate_proj.weight)

    @property
    def left_to_right(self) -> bool:
        """At self-attention, but for encoders that read from both ends."""
        return self.shape.site is not Site.CROSS and not self.config.bidirectional

    def values(self, x: Tensor) -> Tensor:
        """Values B H S D of their projections."""
        return F.silu(x) if self.activated else x

    def features(self, x: Tensor) -> Tensor:
        """Queries and keys B H T D of their projections, in float32 at least."""
        return unit_norm(self.values(x)) if self.normed else self.values(x)

    def gates(self, key: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Log-decays B S H or B S H D, and strengths B S steps*H, in float32 at least, for inputs B S C."""
        return None, None

    def empty(self, batch_size: int) -> Any:
        """The memory that nothing was written to."""
        return self.State(self._zeros(batch_size, self.shape.head_dim, self.shape.head_dim))

    def written_to(self, state: Any, written: Entries) -> Any:
        """The memory after all keys."""
        return self.State(write(state.memory, *written, self.steps))

    def read_from(self, state: Any, query: Tensor) -> Tensor:
        """Readings B H T D of one memory for queries B H T D."""
        return query @ state.memory

    def in_turn(self, state: Any, query: Tensor, written: Entries) -> tuple[Tensor, Any]:
        """Readings B H T D, each after its token was written, and the memory after the last."""
        readings, memory = gated_delta_rule(query, *written, state.memory, self.steps)
        return readings, self.State(memory)

    def whole(self, query: Tensor, written: Entries) -> Tensor:
        """Readings of `in_turn` from the empty memory."""
        return self.in_turn(self.empty(query.size(0)), query, written)[0]

    def initial_state(self, batch_size: int) -> Any:
        """The memory that nothing was written to.  Raises TypeError where sequences are read from both ends."""
        if self.config.bidirectional:
            raise TypeError(f"{self.name}: read from both ends a sequence is needed whole; there is no step form")
        return self.empty(batch_size)

    def write(self, state: Any, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> Any:
        key, value = clear_padding(padding_mask, key, value)
        projected = self.k_proj(key), self.v_proj(value)
        with torch.autocast(key.device.type, enabled=False):
            return self.written_to(state, self._written(key, *projected, padding_mask))

    def read(self, state: Any, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False) -> Reading:
        projected, gate = self._asked(query)
        with torch.autocast(query.device.type, enabled=False):
            joined = self._joined(self.read_from(state, self._queries(projected)), gate)
        return Reading(self.out_proj(joined.to(query.dtype)))

    def advance(self, inputs: Inputs, state: Any, order: Tensor | None) -> tuple[Reading, Any]:
        return self._pass(inputs, state if order is None else select_rows(state, order), False)

    def parallel(self, inputs: Inputs, state: Any) -> tuple[Reading, Any]:
        return self._pass(inputs, state, self.shape.site is not Site.CROSS)

    def _pass(self, inputs: Inputs, state: Any, in_turn: bool) -> tuple[Reading, Any]:
        """state: None for an empty one.  in_turn: whether a token is read after it was written, or all when all are."""
        query, key, value, padding_mask, *_ = inputs
        asked, gate = self._asked(query)
        projected = self.k_proj(key), self.v_proj(value)
        with torch.autocast(query.device.type, enabled=False):
            written, queries = self._written(key, *projected, padding_mask), self._queries(asked)
            if in_turn and state is None:
                readings = self.whole(queries, written)
            elif in_turn:
                readings, state = self.in_turn(state, queries, written)
            else:
                state = self.written_to(self.empty(query.size(0)) if state is None else state, written)
                readings = self.read_from(state, queries)
            if self.config.bidirectional:
                turned = Entries(*(None if x is None else self._turned(x, query.size(1)) for x in written))
                readings = readings + self.whole(queries.flip(2), turned).flip(2)
            joined = self._joined(readings, gate)
        return Reading(self.out_proj(joined.to(query.dtype))), state

    def _zeros(self, batch_size: int, *sizes: int) -> Tensor:
        """B H and the sizes, in float32 at least."""
        like = self.k_proj.weight
        dtype = torch.promote_types(like.dtype, torch.float32)
        return like.new_zeros(batch_size, self.shape.num_heads, *sizes, dtype=dtype)

    def _asked(self, query: Tensor) -> tuple[Tensor, Tensor | None]:
        """Projections B T C of a query's input: the query, and what the output gate is made of."""
        return self.q_proj(query), None if self.output_gate is None else self.gate_proj(query)

    def _queries(self, projected: Tensor) -> Tensor:
        """B H T D, divided by the root of D."""
        queries = self.features(wide(self._heads(projected)))
        return queries * queries.size(-1) ** -0.5

    def _written(
        self, key: Tensor, projected_key: Tensor, projected_value: Tensor, padding_mask: Tensor | None
    ) -> Entries:
        """At padding, where inputs are 0, keys and values are so too, and what else is written does not matter."""
        log_decay, strength = self.gates(key)
        if log_decay is not None:
            log_decay = log_decay.transpose(1, 2)
            if padding_mask is not None:
                pad = padding_mask.unsqueeze(1)  # B 1 S
                log_decay = log_decay.masked_fill(pad if log_decay.dim() == 3 else pad.unsqueeze(-1), 0.0)
        if strength is not None:
            strength = self._rows(strength).squeeze(-1)
        keys, values = wide(self._rows(projected_key)), wide(self._rows(projected_value))
        return Entries(self.features(keys), self.values(values), log_decay, strength)

    def _rows(self, x: Tensor) -> Tensor:
        """B H S*steps D, for x: B S steps*H*D."""
        if self.steps == 1:
            return self._heads(x)
        return x.unflatten(-1, (self.steps, self.shape.num_heads, -1)).permute(0, 3, 1, 2, 4).flatten(2, 3)

    def _turned(self, x: Tensor, length: int) -> Tensor:
        """The tokens of x, B H S*steps ..., from the last to the first, each with its rows in their order."""
        return x.unflatten(2, (length, x.size(2) // max(length, 1))).flip(2).flatten(2, 3)

    def _joined(self, readings: Tensor, gate: Tensor | None) -> Tensor:
        """B T C from readings B H T D, normed and gated."""
        normed = F.rms_norm(readings, readings.shape[-1:], wide(self.head_norm.weight), EPSILON)
        joined = normed.transpose(1, 2).flatten(2)
        return joined if gate is None else joined * self.output_gate(wide(gate))
