"""Euclidean projections onto the polytopes of structured prediction, batched and exact (Peng 2022, section 2.3).

The projection of a point is the closest point of the set.  Every set here is described by one linear constraint for
each row, so a threshold decides the row, and sorting finds the threshold: O(n log n) for a row of n, O(n) memory.
Calculations are in float64, results in the type of the input.  Projecting a point of the set gives it back.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.masking import check_padding_mask, fails
from seqstruct.ops.trees.layout import banned_arcs


def project_simplex(values: Tensor, radius: float = 1.0) -> Tensor:
    """Onto {p >= 0, sum p = radius} along the last axis (sparsemax for radius 1); values: ... n, the result alike.

    Entries of -inf are left out: they become 0, and a row with nothing else becomes 0.  Differentiable once: the
    gradient is centred over the entries above 0 and is 0 elsewhere.  O(n log n) a row.
    Raises ValueError if the radius is not above 0 and finite, or a value is NaN or +inf.
    """
    if not 0 < radius < torch.inf:
        raise ValueError(f"expected a finite radius above 0, got {radius}")
    _refuse("values", values, values < torch.inf)
    return _Simplex.apply(values, radius)


def project_dependencies(arcs: Tensor, padding_mask: Tensor | None = None) -> Tensor:
    """Onto the dependency polytope of eq. 2.5: each word's arcs from its possible heads are in [0, 1] and sum to 1.

    arcs: B n+1 n+1, [b, h, m] is the arc from head h to word m; position 0 is the root symbol, column 0 and the
    diagonal do not matter and become 0, as arcs from or to padding do.  padding_mask: B n over the words, True =
    padding, or None.  The tree constraints beyond one head for each word are relaxed, as in the source.
    O(B n^2 log n).  Raises ValueError if the shapes do not fit or an arc that matters is NaN or +inf.
    """
    if arcs.dim() != 3 or arcs.size(1) != arcs.size(2):
        raise ValueError(f"expected arcs of shape B n+1 n+1, got {tuple(arcs.shape)}")
    check_padding_mask(padding_mask, arcs.size(0), arcs.size(1) - 1)
    impossible = banned_arcs(arcs, None if padding_mask is None else ~padding_mask)
    columns = arcs.masked_fill(impossible, -torch.inf).transpose(1, 2)  # B m h
    return project_simplex(columns).transpose(1, 2)


def project_labeled_arcs(arcs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Onto the semantic dependency polytope of eq. 2.6: the labels of an arc are in [0, 1] and sum to the arc itself.

    arcs: ..., each in [0, 1] after it; labels: ... L, of the same arcs.  Both come back projected, as one point: a box
    with a balance.  With a threshold t, labels become max(l - t, 0) and the arc a + t, unless that leaves [0, 1].
    O(L log L) an arc.  Raises ValueError if the shapes do not fit, there are no labels, or a value is not finite.
    """
    if labels.shape[:-1] != arcs.shape or labels.size(-1) < 1:
        raise ValueError(
            f"expected labels of shape {(*arcs.shape, 'L')} with L >= 1 for arcs of shape {tuple(arcs.shape)}, "
            f"got {tuple(labels.shape)}"
        )
    _refuse("arcs", arcs, arcs.isfinite())
    _refuse("labels", labels, labels.isfinite())
    arc, label = arcs.double(), labels.double()
    descending = label.sort(-1, descending=True).values
    counts = torch.arange(1, label.size(-1) + 1, dtype=arc.dtype, device=arc.device)
    thresholds = (descending.cumsum(-1) - arc.unsqueeze(-1)) / (counts + 1)  # ... L, if the k largest stay above 0
    kept = (descending > thresholds).sum(-1, keepdim=True)  # ... 1; these are the first ones
    threshold = torch.where(kept > 0, thresholds.gather(-1, (kept - 1).clamp(min=0)), -arc.unsqueeze(-1))
    full = (arc.unsqueeze(-1) + threshold) > 1
    label = torch.where(full, project_simplex(label), (label - threshold).clamp(min=0))
    return label.sum(-1).to(arcs.dtype), label.to(labels.dtype)


class _Simplex(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values: Tensor, radius: float) -> Tensor:
        top = values.amax(-1, keepdim=True).clamp(min=torch.finfo(values.dtype).min) if values.size(-1) else values
        z = (values - top).double()  # the largest is 0, so that large values keep their digits
        descending = z.sort(-1, descending=True).values
        counts = torch.arange(1, z.size(-1) + 1, dtype=z.dtype, device=z.device)
        thresholds = (descending.cumsum(-1) - radius) / counts
        kept = (descending > thresholds).sum(-1, keepdim=True)
        threshold = thresholds.gather(-1, (kept - 1).clamp(min=0)) if z.size(-1) else z
        projected = torch.where(kept > 0, (z - threshold).clamp(min=0), 0.0)
        support = projected > 0
        ctx.save_for_backward(support)
        return projected.to(values.dtype)

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        (support,) = ctx.saved_tensors
        grad = grad.masked_fill(~support, 0.0)
        mean = grad.sum(-1, keepdim=True) / support.sum(-1, keepdim=True).clamp(min=1)
        return (grad - mean).masked_fill(~support, 0.0), None


def _refuse(name: str, values: Tensor, fine: Tensor) -> None:
    if fails(~fine, f"{name}: expected numbers"):
        where = tuple((~fine).nonzero()[0].tolist())
        raise ValueError(f"{name}{list(where)}: expected a number, got {values[where].item()}")
