"""Weights of recurrent alignment models, and windows on them (Bahdanau et al. 2015; Luong et al. 2015, sec. 3)."""

from __future__ import annotations

import math

from torch import Tensor


def masked_softmax(scores: Tensor, visible: Tensor) -> Tensor:
    """Softmax over the last axis of those visible (bool, broadcast to the shape); rows that see nothing are zero."""
    blind = ~visible.any(-1, keepdim=True)
    scores = scores.masked_fill(~visible, -math.inf).masked_fill(blind, 0.0)
    return scores.softmax(-1).masked_fill(blind, 0.0)


def within_window(center: Tensor, index: Tensor, half_width: int) -> Tensor:
    """B T S bool: whether key positions B S lie within half_width of the centers B T, the ends included."""
    return (index[:, None] - center[:, :, None]).abs() <= half_width


def gaussian(center: Tensor, index: Tensor, deviation: float) -> Tensor:
    """B T S: exp(-(index - center)^2 / (2 deviation^2)) for key positions B S and centers B T."""
    return (-(index[:, None] - center[:, :, None]).square() / (2 * deviation**2)).exp()
