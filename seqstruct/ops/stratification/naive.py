"""The stratification stack of Grefenstette, Hermann, Suleyman and Blunsom (2015), section 3.1, by its definition.

Elements have strengths; with u_t the strength popped and d_t the strength pushed at step t,

    s_t[i] = max(0, s_{t-1}[i] - max(0, u_t - sum_{i < j < t} s_{t-1}[j]))    i < t     (eq. 2)
    s_t[t] = d_t
    r_t    = sum_i min(s_t[i], max(0, 1 - sum_{i < j <= t} s_t[j])) v_i                 (eq. 3)

Elements are in the order of pushing, the last one the top.
"""

from __future__ import annotations

import torch
from torch import Tensor


def above(strengths: Tensor) -> Tensor:
    """Strength B h that lies above each element, for strengths B h."""
    return strengths.flip(1).cumsum(1).flip(1) - strengths


def naive_stratification_stack(
    push: Tensor, pop: Tensor, pushed: Tensor, vectors: Tensor, strengths: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Readings B T m after each of T steps, 1 or more, and vectors B h+T m and strengths B h+T after all.

    push, pop: B T, 0 or more; pushed: B T m; vectors: B h m and strengths: B h, the stack to go on from.
    """
    readings = []
    for d, u, v in zip(push.unbind(1), pop.unbind(1), pushed.unbind(1), strict=True):
        left = (strengths - (u[:, None] - above(strengths)).clamp(min=0)).clamp(min=0)
        strengths = torch.cat([left, d[:, None]], 1)
        vectors = torch.cat([vectors, v[:, None]], 1)
        weights = strengths.minimum((1 - above(strengths)).clamp(min=0))
        readings.append(torch.einsum("bh,bhm->bm", weights, vectors))
    return torch.stack(readings, 1), vectors, strengths
