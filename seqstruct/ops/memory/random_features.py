"""Features whose products are kernels (Peng 2022, sec. 4.2.2 and 4.3.3; Choromanski et al. 2021, sec. 2.3 and 2.4).

Axis letters: B batch, H heads, T positions, D size of a head, M random vectors, N features.  Vectors x: B H T D;
projection: H M D (or M D, the same for all heads), one random vector a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only


def unit_norm(x: Tensor) -> Tensor:
    """x divided by its Euclidean norm along the last axis; a zero vector stays as it is.  Differentiable once."""
    return _UnitNorm.apply(x)


def project(x: Tensor, projection: Tensor) -> Tensor:
    """w . x for all rows w: B H T M."""
    rows = projection.transpose(-1, -2)
    if projection.dim() != 3 or x.size(-2) >= x.size(-1):
        return x @ rows
    # For few positions the product above would spend its time on a copy of the projection for each of the batch.
    by_head = x.transpose(0, 1)
    return (by_head.flatten(1, 2) @ rows).unflatten(1, by_head.shape[1:3]).transpose(0, 1)


def gaussian_features(x: Tensor, projection: Tensor) -> Tensor:
    """B H T 2M: sqrt(1/M) [sin(w . x), cos(w . x)], sines first (eq. 4.2).  Differentiable once.

    For w ~ N(0, I/s^2) products of features estimate exp(-|x - y|^2 / 2 s^2) without bias.  The thesis writes
    N(0, s^2 I) above eq. 4.3, which does not give that kernel.
    """
    return _Sinusoids.apply(project(x, projection))


def arccos_features(x: Tensor, projection: Tensor) -> Tensor:
    """B H T M: sqrt(1/M) relu(w . x), of the arc-cosine kernel of order 1 (sec. 4.3.3)."""
    return (project(x, projection)).relu() * projection.size(-2) ** -0.5


def positive_features(x: Tensor, projection: Tensor, hyperbolic: bool = False) -> tuple[Tensor, Tensor]:
    """Features B H T N in (0, 1] and log-scales B H T: features * exp(log-scale) = sqrt(1/N) exp(w . x - |x|^2 / 2).

    Products estimate exp(x . y) without bias for w ~ N(0, I).  N = M; with `hyperbolic`, N = 2M: w and -w (lemma 1).
    """
    projected = project(x, projection)
    if hyperbolic:
        projected = torch.cat([projected, -projected], -1)
    # The largest exponent moves into the scale and cancels there, so no gradient flows through it.
    largest = projected.detach().amax(-1)
    features = (projected - largest.unsqueeze(-1)).exp() * projected.size(-1) ** -0.5
    return features, largest - x.square().sum(-1) / 2


def orthogonal_projection(rows: int, dim: int, generator: torch.Generator) -> Tensor:
    """rows x dim: each row is N(0, I) on its own, and every block of `dim` rows is orthogonal (sec. 2.4)."""
    blocks = []
    for _ in range(-(-rows // dim)):
        q, r = torch.linalg.qr(torch.randn(dim, dim, generator=generator))
        blocks.append((q * r.diagonal().sign()).T)  # the signs make the rotation uniform
    norms = torch.randn(rows, dim, generator=generator).norm(dim=1, keepdim=True)
    return torch.cat(blocks)[:rows] * norms


class _UnitNorm(torch.autograd.Function):
    """The derivative from the result: a third of the memory traffic of the operators one by one."""

    @staticmethod
    def forward(ctx, x):
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        factor = norm.masked_fill_(norm == 0, 1.0).reciprocal_()
        result = x * factor
        ctx.save_for_backward(result, factor)
        return result

    @staticmethod
    @first_derivatives_only
    def backward(ctx, d_result):
        result, factor = ctx.saved_tensors
        along = (result * d_result).sum(-1, keepdim=True)
        return torch.addcmul(d_result, result, along, value=-1).mul_(factor)


class _Sinusoids(torch.autograd.Function):
    """sqrt(1/M) [sin, cos]: each is the other's derivative, so that none is computed twice."""

    @staticmethod
    def forward(ctx, x):
        size = x.size(-1)
        result = x.new_empty(*x.shape[:-1], 2 * size)
        torch.sin(x, out=result[..., :size])
        torch.cos(x, out=result[..., size:])
        result *= size**-0.5
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @first_derivatives_only
    def backward(ctx, d_result):
        sine, cosine = ctx.saved_tensors[0].chunk(2, -1)
        d_sine, d_cosine = d_result.chunk(2, -1)
        return (d_sine * cosine).addcmul_(d_cosine, sine, value=-1)
