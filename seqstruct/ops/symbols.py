"""Symbols of strings: whole numbers of any type."""

from __future__ import annotations

import torch
from torch import Tensor


def whole_numbers(name: str, given: Tensor) -> Tensor:
    """As long; bytes would be read as a mask.  Raises ValueError on numbers of another kind, or one without an axis."""
    if given.dim() < 1 or given.dtype == torch.bool or given.is_floating_point() or given.is_complex():
        raise ValueError(f"expected {name} * N of whole numbers, got {tuple(given.shape)} {given.dtype}")
    return given.long()
