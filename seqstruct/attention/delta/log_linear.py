"""Log-linear attention: Mamba-2's memory in O(log T) parts (Guo et al. 2025, sec. 3; its log-linear Mamba-2).

    o_t = sum_l scale_tl q_t^T S_t^(l) / sqrt(D)

S^(l) sums, as `ssd` does, over the tokens of one bucket of a Fenwick tree over the past: level 0 is the token itself,
level l >= 1 a bucket of 2^(l-1) tokens, the older the larger.  scale_t = softplus(W x_t + b), one number for each level
of a head, of the query's input, 1 at first, so that it begins as `ssd`.
`levels` is the number of them; beyond 2^(levels - 1) tokens the last level holds all that is older.
O(T log(T) C D) time, from a state O(T levels C D); O(levels C D) state, of which a step writes all.
Deviations: those of `ssd`; the scales' layer is a linear one with softplus.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.delta.base import DeltaAttention, Entries
from seqstruct.attention.delta.gates import softplus
from seqstruct.attention.delta.ssd import StateSpaceAttention
from seqstruct.attention.kernel.base import wide
from seqstruct.attention.option import option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.delta import Buckets, log_linear, log_linear_after, read_buckets, write_buckets


@register_attention("log_linear", sites=(Site.ENCODER_SELF, Site.DECODER_SELF))
class LogLinearAttention(StateSpaceAttention):
    """Memories of the past by its age.  Queries have their scales behind them, B H T D+L."""

    State = Buckets

    class Config(DeltaAttention.Config):
        levels: int = option(12, least=2, most=60)  # parts of the memory

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.scale_layer = nn.Linear(shape.embed_dim, shape.num_heads * config.levels)
        nn.init.zeros_(self.scale_layer.weight)
        nn.init.constant_(self.scale_layer.bias, math.log(math.e - 1))  # softplus of it is 1

    def empty(self, batch_size: int) -> Buckets:
        memory = self._zeros(batch_size, self.config.levels, self.shape.head_dim, self.shape.head_dim)
        return Buckets(memory, torch.zeros(batch_size, dtype=torch.long, device=memory.device))

    def written_to(self, state: Buckets, written: Entries) -> Buckets:
        return write_buckets(state, *written)

    def read_from(self, state: Buckets, query: Tensor) -> Tensor:
        return read_buckets(state, *self._split(query))

    def in_turn(self, state: Buckets, query: Tensor, written: Entries) -> tuple[Tensor, Buckets]:
        return log_linear_after(state, *self._split(query), *written)

    def whole(self, query: Tensor, written: Entries) -> Tensor:
        return log_linear(*self._split(query), *written)

    def _asked(self, query: Tensor) -> tuple[Tensor, Tensor]:
        projected, gate = super()._asked(query)
        return torch.cat([projected, self.scale_layer(query)], -1), gate

    def _queries(self, projected: Tensor) -> Tensor:
        queries, scales = projected.split([self.shape.embed_dim, self.scale_layer.out_features], -1)
        return torch.cat([super()._queries(queries), softplus(wide(self._heads(scales)))], -1)

    def _split(self, query: Tensor) -> list[Tensor]:
        return list(query.split([query.size(-1) - self.config.levels, self.config.levels], -1))

    def _written(
        self, key: Tensor, projected_key: Tensor, projected_value: Tensor, padding_mask: Tensor | None
    ) -> Entries:
        """strength: B 1 S long, 1 for a token and 0 for padding, None where there is none."""
        written = super()._written(key, projected_key, projected_value, padding_mask)
        return written if padding_mask is None else written._replace(strength=(~padding_mask).long().unsqueeze(1))
