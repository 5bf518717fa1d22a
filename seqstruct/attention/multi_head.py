"""Multi-head projections (Vaswani et al. 2017, sec. 3.2.2), which mechanisms with heads share."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from seqstruct.attention.base import Attention, Shape


class MultiHeadAttention(Attention):
    """Queries, keys and values of H heads, and the output's projection; a subclass says what is done with them.

    Parameters bear the names of fairseq's own attention (q_proj, k_proj, v_proj, out_proj, all with bias or, where
    `biases` is False, none) and start as they do there: Xavier uniform, with gain 1/sqrt(2) where queries, keys and
    values are of one size.
    """

    biases: ClassVar[bool] = True

    def __init__(self, config: Any, shape: Shape):
        """Raises ValueError if embed_dim is not a multiple of num_heads."""
        super().__init__(config, shape)
        if shape.embed_dim % shape.num_heads:
            raise ValueError(f"{self.name}: embed_dim {shape.embed_dim} is not a multiple of {shape.num_heads} heads")
        self.q_proj = nn.Linear(shape.embed_dim, shape.embed_dim, bias=self.biases)
        self.k_proj = nn.Linear(shape.key_dim, shape.embed_dim, bias=self.biases)
        self.v_proj = nn.Linear(shape.value_dim, shape.embed_dim, bias=self.biases)
        self.out_proj = nn.Linear(shape.embed_dim, shape.embed_dim, bias=self.biases)
        one_size = shape.embed_dim == shape.key_dim == shape.value_dim
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(projection.weight, gain=2**-0.5 if one_size else 1.0)
        nn.init.xavier_uniform_(self.out_proj.weight)
        if self.biases:
            nn.init.zeros_(self.out_proj.bias)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.shape.num_heads, -1)).transpose(1, 2)  # B H T D
