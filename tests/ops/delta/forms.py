"""What tests of the family's forms share: random inputs, and values and gradients side by side."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqstruct.ops.delta.chunks import CHUNK

EXACT = {"rtol": 1e-10, "atol": 1e-10}
BATCH, HEADS, K, V = 2, 3, 4, 5
LONG = 3 * CHUNK + 7
LENGTHS = pytest.mark.parametrize("length", [1, 7, CHUNK, LONG])


def random(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(BATCH, HEADS, *shape, generator=generator, dtype=torch.float64)


def leaves(arguments: list) -> list[Tensor]:
    return [x.requires_grad_() for x in arguments if isinstance(x, Tensor)]


def assert_alike(found: tuple[Tensor, ...], wanted: tuple[Tensor, ...], inputs: list[Tensor]) -> None:
    """Values, and gradients of a fixed projection of all of them."""
    gradients = []
    for results in (found, wanted):
        total = sum((x * torch.linspace(-1, 2, x.numel()).view(x.shape)).sum() for x in results)
        gradients.append(torch.autograd.grad(total, inputs))
    torch.testing.assert_close((*found, *gradients[0]), (*wanted, *gradients[1]), **EXACT)
