"""Multi-head projections (Vaswani et al. 2017, sec. 3.2.2), which mechanisms with heads share."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.base import Attention, Shape
from seqstruct.attention.linear import Linear
from seqstruct.ops.masking import positions
from seqstruct.ops.rotary import rotated

EPSILON = 1e-6  # of the norms of queries and keys


class HeadProjection(Linear):
    """A projection to heads that are normed one by one, or each repeated for a group of queries' heads, or both."""

    def __init__(self, inputs: int, outputs: int, dim: int, bias: bool, norm: bool, repeats: int):
        """outputs: all heads together, each of size dim, before they are repeated."""
        super().__init__(inputs, outputs, bias)
        self.dim, self.repeats = dim, repeats
        self.norm = nn.RMSNorm(dim, EPSILON) if norm else None

    def forward(self, x: Tensor) -> Tensor:
        """B S H*repeats*D for inputs B S C."""
        return self.normed_and_repeated(super().forward(x))

    def normed_and_repeated(self, x: Tensor) -> Tensor:
        """The same from what the linear layer gives, B S H*D."""
        heads = x.unflatten(-1, (-1, self.dim))  # B S H D
        if self.norm is not None:
            heads = F.rms_norm(heads, (self.dim,), self.norm.weight.to(heads.dtype), EPSILON)
        return repeated(heads, self.repeats, -2).flatten(-2)


class MultiHeadAttention(Attention):
    """Queries, keys and values of H heads, and the output's projection; a subclass says what is done with them.

    Parameters bear the names of fairseq's own attention (q_proj, k_proj, v_proj, out_proj, all with bias or, where
    `biases` or the slot's is False, none) and start as they do there: Xavier uniform, with gain 1/sqrt(2) where
    queries, keys and values are of one size.
    With `holds_groups = True` keys and values of a slot with fewer kv_heads stay fewer, and the subclass repeats them.
    """

    biases: ClassVar[bool] = True
    one_projection: ClassVar[bool] = False  # of queries and keys
    holds_groups: ClassVar[bool] = False

    def __init__(self, config: Any, shape: Shape):
        """Raises ValueError if embed_dim is no multiple of num_heads, or that none of the slot's kv_heads."""
        super().__init__(config, shape)
        if shape.embed_dim % shape.num_heads:
            raise ValueError(f"{self.name}: embed_dim {shape.embed_dim} is not a multiple of {shape.num_heads} heads")
        if shape.num_heads % self.kv_heads:
            raise ValueError(
                f"{self.name}: {shape.num_heads} heads are not a multiple of {self.kv_heads} heads of keys and values"
            )
        if shape.slot.rotary_base is not None and self.shape.head_dim % 2:
            raise ValueError(f"{self.name}: rotary positions need heads of even size, not {self.shape.head_dim}")
        norm, kept, repeats = shape.slot.qk_norm, self.kv_heads * self.shape.head_dim, self.held_heads // self.kv_heads
        self.q_proj = self._projection(shape.embed_dim, shape.embed_dim, norm)
        self.k_proj = self._projection(shape.key_dim, kept, norm, repeats)
        self.v_proj = self._projection(shape.value_dim, kept, False, repeats)
        self.out_proj = self._projection(shape.embed_dim, shape.embed_dim)
        one_size = shape.embed_dim == shape.key_dim == shape.value_dim
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(projection.weight, gain=2**-0.5 if one_size else 1.0)
        nn.init.xavier_uniform_(self.out_proj.weight)
        if self.out_proj.bias is not None:
            nn.init.zeros_(self.out_proj.bias)

    @property
    def kv_heads(self) -> int:
        """Heads that keys and values are projected to."""
        return self.shape.slot.kv_heads or self.shape.num_heads

    @property
    def held_heads(self) -> int:
        """Heads of keys and values that the mechanism gets from the projections."""
        return self.kv_heads if self.holds_groups else self.shape.num_heads

    def _projection(self, inputs: int, outputs: int, norm: bool = False, repeats: int = 1) -> nn.Linear:
        bias = self.biases and self.shape.slot.biases
        if not norm and repeats == 1:
            return Linear(inputs, outputs, bias)
        return HeadProjection(inputs, outputs, self.shape.head_dim, bias, norm, repeats)

    def _heads(self, x: Tensor) -> Tensor:
        return in_heads(x, self.shape.num_heads)

    def _rotated(
        self, heads: Tensor, padding_mask: Tensor | None, before: Tensor | None = None, together: bool = False
    ) -> Tensor:
        """Heads B H T D, turned by their positions where the slot asks for it.

        padding_mask: B S of the tokens whose last T these are; None for T tokens.  before: B long, how many real ones
        came before them all; None for 0.  together: whether all T stand where the last cell does.  Padding stands where
        the real token before it does.
        """
        base = self.shape.slot.rotary_base
        if base is None:
            return heads
        length = 1 if together else heads.size(2)
        if padding_mask is None:
            place = torch.arange(heads.size(2), device=heads.device)[None, -length:]  # 1 T, or 1 1
        else:
            place = (positions(padding_mask) - padding_mask.long()).clamp(min=0)[:, padding_mask.size(1) - length :]
        return rotated(heads, place if before is None else place + before.unsqueeze(1), base)


def in_heads(x: Tensor, heads: int) -> Tensor:
    """B H T D for x: B T H*D."""
    batch, length, size = x.shape
    return x.view(batch, length, heads, size // heads).transpose(1, 2)


def repeated(x: Tensor, times: int, axis: int) -> Tensor:
    """x with each entry of an axis so many times in a row."""
    return x if times == 1 else x.repeat_interleave(times, axis)
