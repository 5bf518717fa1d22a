"""Two graphs over the same leaves compared."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def assert_same(found: Tensor, expected: Tensor, leaves: Sequence[Tensor]) -> None:
    """The same values, and the same gradients of the leaves however often they are asked for."""
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(0), dtype=expected.dtype)
    wanted = torch.autograd.grad(expected, leaves, weights)
    for _ in range(2):
        again = torch.autograd.grad(found, leaves, weights, retain_graph=True)
        torch.testing.assert_close(again, wanted, rtol=0, atol=1e-13)
