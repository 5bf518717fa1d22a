"""Scores of all pairs by a layer of tanh units (Bahdanau et al. 2015): [b, i, j] = weight . tanh(left_i + right_j)."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only


def additive_scores(left: Tensor, right: Tensor, weight: Tensor) -> Tensor:
    """B N M, for left B N C, right B M C and weight C, all of one floating type; first derivatives only.

    O(B N M C) time and memory; the derivatives take few passes over what is kept.
    Raises ValueError if the shapes or types do not fit.
    """
    fits = left.dim() == right.dim() == 3 and left.size(0) == right.size(0)
    if not fits or left.size(2) != right.size(2) or weight.shape != left.shape[2:]:
        shapes = ", ".join(str(tuple(x.shape)) for x in (left, right, weight))
        raise ValueError(f"expected left B N C, right B M C and weight C, got {shapes}")
    if not left.dtype == right.dtype == weight.dtype:
        raise ValueError(f"expected one type, got {left.dtype}, {right.dtype} and {weight.dtype}")
    return _AdditiveScores.apply(left, right, weight)


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left: Tensor, right: Tensor, weight: Tensor) -> Tensor:
        units = (left.unsqueeze(2) + right.unsqueeze(1)).tanh_()  # B N M C
        ctx.save_for_backward(units, weight)
        return units @ weight

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        units, weight = ctx.saved_tensors
        of_weight = grad.flatten() @ units.flatten(0, 2)
        slope_lost = units.square().mul_(grad.unsqueeze(3))  # the slope of tanh is 1 minus its square
        of_left, of_right = ((grad.sum(d).unsqueeze(2) - slope_lost.sum(d)) * weight for d in (2, 1))
        return of_left, of_right, of_weight
