"""All readings of a stratification stack at once.

Elements lie on one another without gaps: element i, pushed at height g_i, reaches from g_i to what is left of its top.
Only the height moves,

    g_t = max(0, g_{t-1} + d_{t-1} - u_t)        where step t pushes, after it popped

which is a sum less its least value so far; what is left of element i at step t ends at the lowest height that was
popped to since, min(g_i + d_i, min_{i < k <= t} g_k), and it is read as far as it lies within 1 of the top, g_t + d_t.
So the reading weights of all steps are one lower triangular matrix, of cumulative minima.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class StratificationStack(NamedTuple):
    """vectors: B h m, the last one the top; base, top: B h float64, between which heights each element lies."""

    vectors: Tensor
    base: Tensor
    top: Tensor

    @property
    def strengths(self) -> Tensor:
        """B h, 0 or more."""
        return self.top - self.base


def empty_stack(like: Tensor, batch_size: int) -> StratificationStack:
    """A stack of no elements, of vectors as `like`, ... m."""
    nothing = like.new_zeros(batch_size, 0, dtype=torch.float64)
    return StratificationStack(like.new_zeros(batch_size, 0, like.size(-1)), nothing, nothing)


def stratification_stack(
    push: Tensor, pop: Tensor, pushed: Tensor, stack: StratificationStack
) -> tuple[Tensor, StratificationStack]:
    """All readings of a sequence, and the stack after it.

    push, pop: B T, strengths, 0 or more; pushed: B T m; stack: what to go on from.
    Returns readings B T m, after each step, in the data type of `pushed`, and the stack with T elements more.
    A step that pushes and pops 0 changes no reading.  Heights are computed in float64.
    Raises ValueError if the shapes do not fit.
    Cost: O(B T (h + T) m) time, O(B T (h + T + m)) memory.  Any number of derivatives.
    """
    if not push.shape == pop.shape == pushed.shape[:2] or pushed.size(-1) != stack.vectors.size(-1):
        raise ValueError(
            f"expected push and pop B T and pushed B T m to fit the stack's vectors {tuple(stack.vectors.shape)}, "
            f"got {tuple(push.shape)}, {tuple(pop.shape)} and {tuple(pushed.shape)}"
        )
    if not push.size(1):
        return pushed, stack
    push, pop = push.double(), pop.double()
    height = stack.top[:, -1:] if stack.top.size(1) else push.new_zeros(len(push), 1)
    moved = (torch.cat([height, push[:, :-1]], 1) - pop).cumsum(1)
    base = moved - moved.cummin(1).values.clamp(max=0)  # B T
    top = base + push
    later = torch.ones(push.size(1), push.size(1), dtype=torch.bool, device=push.device).tril(-1)
    lowest = torch.where(later, base.unsqueeze(2), torch.inf).cummin(1).values  # B T T: since i, at t
    lowest = torch.cat([base.cummin(1).values.unsqueeze(2).expand(-1, -1, stack.top.size(1)), lowest], 2)
    bases, tops = torch.cat([stack.base, base], 1), torch.cat([stack.top, top], 1)
    ends = lowest.minimum(tops.unsqueeze(1))  # B T h+T
    weights = (ends - bases.unsqueeze(1).maximum(top.unsqueeze(2) - 1)).clamp(min=0).tril(stack.top.size(1))
    vectors = torch.cat([stack.vectors, pushed], 1)
    readings = weights.to(vectors.dtype) @ vectors
    return readings, StratificationStack(vectors, bases, ends[:, -1].maximum(bases))
