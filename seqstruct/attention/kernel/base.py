"""What the kernel family shares: projections, and a memory of fixed size that features write to and read from."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Cost, Inputs, Reading
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.ops.masking import clear_padding
from seqstruct.ops.memory import FeatureMap, Memory, Schedule, causal_linear_attention, empty_memory, linear_attention


class Keys(NamedTuple):
    """Keys ready to be written: B H S D vectors or, where `mapped`, B H S N features, unweighted; values B H S E;

    the factors of the features, B H S, and their schedule, if they have any.
    """

    key: Tensor
    mapped: bool
    value: Tensor
    weight: Tensor | None
    plan: Schedule | None


class KernelAttention(MultiHeadAttention):
    """Multi-head attention with weights proportional to products of features of queries and keys.

    A subclass gives the map, which queries and keys share, and the number of features, if that is no option.
    Projections bear the names of softmax attention's, so that its parameters can be taken over.  There are no weights
    to show or to drop: `dropout` of the shape is not used.  Readings have the extra `denominator`, B T H without
    gradient and relative to the largest scale of a key: where it is close to 0 or negative, estimates by random
    features mean little.
    O((T + S) N C) time, O(N C) state.  One pass over a short sequence whose queries all see all keys is by pairs of
    these, O(T S (H N + C)) time, where that is less.
    Everything between the projections is computed in float32 at least.
    """

    State = Memory
    cost = Cost(training="linear", state="constant")
    floor: float = 0.0  # what stands in the place of smaller denominators; 0: nothing does

    @property
    def num_features(self) -> int:
        """N, the size of the feature map of one head: the option `features`."""
        return self.config.features

    def feature_map(self, fixed: bool) -> FeatureMap:
        """The map of one pass, from D to N.

        fixed: the map has to be the same in every pass, as where a memory is handed on.
        """
        raise TypeError(f"{type(self).__name__} defines no features")

    def gates(self, key: Tensor) -> tuple[Tensor, Tensor] | None:
        """log g and 1 - g, each B H S, for inputs B S C: what of the memory stays and of the key enters (eq. 4.8)."""
        return None

    def projected(self, layer: nn.Linear, x: Tensor) -> Tensor:
        """Queries or keys B H T D of inputs B T C."""
        return self._heads(layer(x))

    def initial_state(self, batch_size: int) -> Memory:
        sizes = self.shape.num_heads, self.num_features, self.shape.head_dim
        return empty_memory(batch_size, *sizes, self.k_proj.weight)

    def write(self, state: Memory, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> Memory:
        key, value = clear_padding(padding_mask, key, value)
        feature_map = self.feature_map(True)
        keys = self._keys(state, key, value, padding_mask, feature_map, key.size(1) == 1)
        return self._write(state, keys, feature_map)

    def read(
        self, state: Memory, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        return self._read(state, query, self.feature_map(True))

    def advance(self, inputs: Inputs, state: Memory, order: Tensor | None) -> tuple[Reading, Memory]:
        query, key, value, padding_mask, *_ = inputs
        feature_map = self.feature_map(True)
        level = state.level if order is None else state.level.index_select(0, order)
        keys = self._keys(state._replace(level=level), key, value, padding_mask, feature_map, True)
        queries, left = self._queries(query, keys, feature_map)
        with torch.autocast(query.device.type, enabled=False):
            output, denominator, state = linear_attention.step(
                state, order, queries, keys.key, keys.value, keys.plan, left, keys.weight, self.floor
            )
        return self._join(output, denominator, query.dtype), state

    def parallel(self, inputs: Inputs, state: Memory | None) -> tuple[Reading, Memory]:
        query, key, value, padding_mask, *_ = inputs
        feature_map = self.feature_map(state is not None)
        empty = state is None
        state = self.initial_state(query.size(0)) if empty else state
        keys = self._keys(state, key, value, padding_mask, feature_map, self.left_to_right)
        if not self.left_to_right:
            if empty and self._short(query, key):
                return self._read_pairs(query, keys, feature_map), state
            state = self._write(state, keys, feature_map)
            return self._read(state, query, feature_map), state
        queries, left = self._queries(query, keys, feature_map)
        with torch.autocast(query.device.type, enabled=False):
            output, denominator, state = causal_linear_attention(
                state, queries, keys.key, keys.value, keys.plan, left, keys.weight, self.floor
            )
        return self._join(output, denominator, query.dtype), state

    def _queries(self, query: Tensor, keys: Keys, feature_map: FeatureMap) -> tuple[Tensor, FeatureMap | None]:
        """Queries as the keys are, vectors or features, and the map that is left to do."""
        queries = self.projected(self.q_proj, query)
        with torch.autocast(query.device.type, enabled=False):
            queries = wide(queries)
            return (feature_map(queries)[0], None) if keys.mapped else (queries, feature_map)

    def _keys(
        self,
        state: Memory,
        key: Tensor,
        value: Tensor,
        padding_mask: Tensor | None,
        feature_map: FeatureMap,
        by_chunk: bool = False,
    ) -> Keys:
        """by_chunk: whether a chunked map is left to whoever writes the keys."""
        keys, values = self.projected(self.k_proj, key), self._heads(self.v_proj(value))
        with torch.autocast(key.device.type, enabled=False):
            keys = wide(keys)
            mapped = not (by_chunk and feature_map.chunked)
            keys, log_scale = feature_map(keys) if mapped else (keys, feature_map.log_scale(keys))
            log_gate, weight = self.gates(key) or (None, None)
            if padding_mask is not None:
                pad = padding_mask.unsqueeze(1)
                log_scale = None if log_scale is None else log_scale.masked_fill(pad, linear_attention.LOWEST)
                log_gate = None if log_gate is None else log_gate.masked_fill(pad, 0.0)
                weight = keys.new_ones(keys.shape[:3]) if weight is None else weight
                weight = weight.masked_fill(pad, 0.0)
            plan = linear_attention.schedule(state.level, log_scale, log_gate)
            if log_scale is not None:
                weight = plan.weight if weight is None else weight * plan.weight
        return Keys(keys, mapped, wide(values), weight, plan)

    @staticmethod
    def _write(state: Memory, keys: Keys, feature_map: FeatureMap) -> Memory:
        with torch.autocast(keys.value.device.type, enabled=False):
            features = None if keys.mapped else feature_map
            return linear_attention.write(state, keys.key, keys.value, keys.plan, features, keys.weight)

    def _read(self, state: Memory, query: Tensor, feature_map: FeatureMap) -> Reading:
        queries = self.projected(self.q_proj, query)
        with torch.autocast(query.device.type, enabled=False):
            output, denominator = linear_attention.read(state, wide(queries), feature_map, self.floor)
        return self._join(output, denominator, query.dtype)

    def _short(self, query: Tensor, key: Tensor) -> bool:
        """Whether pairs of tokens cost less than a memory does; a trace, which is for all lengths, has the memory."""
        lengths = query.size(1), key.size(1)
        return not torch.compiler.is_compiling() and linear_attention.pairs_cost_less(
            *lengths, self.num_features, self.shape.head_dim
        )

    def _read_pairs(self, query: Tensor, keys: Keys, feature_map: FeatureMap) -> Reading:
        queries = self.projected(self.q_proj, query)
        with torch.autocast(query.device.type, enabled=False):
            output, denominator = linear_attention.read_pairs(
                wide(queries), keys.key, keys.value, feature_map, keys.plan, keys.weight, self.floor
            )
        return self._join(output, denominator, query.dtype)

    def _join(self, output: Tensor, denominator: Tensor, dtype: torch.dtype) -> Reading:
        """B T C from heads B H T E; where no head read anything there is no bias either."""
        blind = (denominator == 0).all(1).unsqueeze(-1)  # B T 1
        output = self.out_proj(output.transpose(1, 2).flatten(2).to(dtype))
        return Reading(output.masked_fill(blind, 0.0), None, {"denominator": denominator.detach().transpose(1, 2)})


def wide(x: Tensor) -> Tensor:
    """x in float32 at least."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
