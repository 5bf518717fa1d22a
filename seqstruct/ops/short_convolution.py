"""Short convolutions: weighted sums of K neighbouring tokens, channel by channel."""

from __future__ import annotations

import torch
from torch import Tensor


def short_convolution(x: Tensor, weight: Tensor) -> Tensor:
    """y_t = sum_{j < K} w_j o x_{t + j}: B T-K+1 C for x: B T C and weight: K C; zeros for K = 0.

    O(B T K C) time.  Sums of shifted tokens take less than torch's convolution with one group a channel, and no number
    depends on other tokens than its own K.
    """
    length = x.size(1) - weight.size(0) + 1
    y = torch.zeros_like(x[:, :1], dtype=torch.promote_types(x.dtype, weight.dtype)).expand(-1, length, -1)
    for j in range(weight.size(0)):
        y = torch.addcmul(y, x[:, j : j + length], weight[j])
    return y
