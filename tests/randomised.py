"""Random numbers, and modules with random parameters, so that no test passes because a term starts at zero."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def draw(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Normal numbers in double precision."""
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def randomised(module: Module, generator: torch.Generator, bound: float = 0.9) -> Module:
    """The module with independent parameters, uniform within the bound."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-bound, bound, generator=generator)
    return module
