"""How much of a memory stays and how much of a key enters: layers on the key's input, in float32 at least."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.gate import Gate, wide_layers


class Strength(Gate):
    """beta = sigmoid(W x + b), one number for each head and step; twice that, in (0, 2), where `negative`.

    The bias, 0 at first, is a deviation.
    """

    def __init__(self, input_dim: int, count: int, negative: bool = False):
        super().__init__(input_dim, count)
        self.most = 2.0 if negative else 1.0

    def forward(self, x: Tensor) -> Tensor:
        """B S count, for inputs B S C."""
        return self.most * super().forward(x).sigmoid()


class StepSize(nn.Module):
    """The decay of Mamba-2 (Dao and Gu 2024, sec. 7): log a = -exp(A) delta, delta = softplus(W x + b).

    exp(A), one number a head, starts uniformly between 1 and 16, delta about log-uniformly between 0.001 and 0.1.
    """

    def __init__(self, input_dim: int, heads: int):
        super().__init__()
        self.layer = nn.Linear(input_dim, heads, bias=False)
        self.rate, self.bias = _rate(heads), _step_bias(heads)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """log a and delta, both B S H, for inputs B S C."""
        size = softplus(wide_layers(self.layer, x) + self.bias)
        return -self.rate.to(size.dtype).exp() * size, size


class ChannelStepSize(nn.Module):
    """The same with a delta for each channel, through two layers, the first of them narrow (Kimi Team 2025, sec. 3)."""

    def __init__(self, input_dim: int, heads: int, dim: int):
        super().__init__()
        self.layer = low_rank(input_dim, dim, heads * dim, bias=False)
        self.rate, self.bias = _rate(heads), _step_bias(heads * dim)

    def forward(self, x: Tensor) -> Tensor:
        """log a, B S H D, for inputs B S C."""
        size = softplus(wide_layers(self.layer, x) + self.bias).unflatten(-1, (len(self.rate), -1))
        return -self.rate.to(size.dtype).exp().unsqueeze(-1) * size


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)).  Compiled, the derivative of PyTorch's own is laid out in memory as no graph expects."""
    return -F.logsigmoid(-x) if torch.compiler.is_compiling() else F.softplus(x)


def _rate(heads: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(heads).uniform_(1, 16).log())


def _step_bias(count: int) -> nn.Parameter:
    size = torch.empty(count).uniform_(math.log(1e-3), math.log(1e-1)).exp()
    return nn.Parameter(size + torch.log(-torch.expm1(-size)))  # softplus of it is the size


def low_rank(input_dim: int, rank: int, count: int, bias: bool) -> nn.Sequential:
    """Two linear layers, the first and narrow one without a bias."""
    return nn.Sequential(nn.Linear(input_dim, rank, bias=False), nn.Linear(rank, count, bias=bias))
