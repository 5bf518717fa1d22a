"""The gate of a memory (Peng 2022, eq. 4.8): one learned scalar a head and step, made from the key's input."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Gate(nn.Linear):
    """g = sigmoid(w . x + b): how much of the memory stays; 1 - g of the new key enters.  Starts around 1/2."""

    def __init__(self, input_dim: int, num_heads: int):
        super().__init__(input_dim, num_heads)
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of g, B S H in float32 at least, for inputs B S C."""
        return wide_layers(self, x)


def wide_layers(layer: nn.Linear | nn.Sequential, x: Tensor) -> Tensor:
    """A linear layer, or several in a row, in float32 at least: .. outputs, for inputs .. C."""
    dtype = torch.promote_types(x.dtype, torch.float32)
    x = x.to(dtype)
    for linear in layer if isinstance(layer, nn.Sequential) else (layer,):
        x = F.linear(x, linear.weight.to(dtype), None if linear.bias is None else linear.bias.to(dtype))
    return x
