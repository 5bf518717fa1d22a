"""What feed-forward layers of decoders of today have between their two linear layers."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def swiglu(x: Tensor) -> Tensor:
    """silu(g) * u, (..., N) for x: (..., 2N), g its first half and u its second (Shazeer 2020, eq. 6, without biases).

    One linear layer gives both halves: the paper's W and V, one above the other.
    """
    gate, value = x.chunk(2, -1)
    return F.silu(gate) * value
