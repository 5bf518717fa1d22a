"""Feature maps of attention, in two forms: all positions at once, and one chunk after another inside a longer pass.

The first form is for a step or a whole memory: `map(x)` gives the features B H T N of x B H T D and the logarithms of
their scales B H T, or None where all scales are 1.  The second spares the features' way through memory: they are
computed from x where they are used and computed again in the backward pass.  There B and H are merged in G, and
features leave out the constant `scale`, which cancels in what is read.

    by_head()                           tensors with H first that the map is made of
    parameters(batch)                   the same with G first, which the chunks need
    chunk(x, *parameters)               features G T N, and what their derivative needs beside them
    chunk_backward(d, features, saved, gradients, *parameters)
                                        gradient for x; those of the parameters are added to `gradients`

Random features are functions of vectors x, B H T D, and a projection, H M D (or M D, the same for all heads), one
random vector w a row; their products are kernels (Peng 2022, sec. 4.2.2 and 4.3.3; Choromanski et al. 2021, sec. 2.3
and 2.4).
Axis letters: B batch, H heads, T positions, D size of a head, M random vectors, N features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

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
    """B H T 2M: sqrt(1/M) [sin(w . x), cos(w . x)], sines first (eq. 4.2).

    For w ~ N(0, I/s^2) products of features estimate exp(-|x - y|^2 / 2 s^2) without bias.  The thesis writes
    N(0, s^2 I) above eq. 4.3, which does not give that kernel.
    """
    return _SinesAndCosines.apply(project(x, projection), projection.size(-2) ** -0.5)


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


class _SinesAndCosines(torch.autograd.Function):
    """Sines, then cosines, times a factor; the derivative from the result, where operators would compute both again."""

    @staticmethod
    def forward(ctx, angles, factor):
        result = torch.cat([angles.sin(), angles.cos()], -1).mul_(factor)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @first_derivatives_only
    def backward(ctx, d_result):
        sines, cosines = ctx.saved_tensors[0].chunk(2, -1)
        d_sines, d_cosines = d_result.chunk(2, -1)
        return (d_sines * cosines).addcmul_(d_cosines, sines, value=-1), None


class FeatureMap(ABC):
    """Base of all maps: the chunked form is there where `chunked`."""

    chunked = False
    kind = 0  # its number in the compiled kernel, where `chunked`
    scale = 1.0

    @abstractmethod
    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Features and the logarithms of their scales."""

    def log_scale(self, x: Tensor) -> Tensor | None:
        """The logarithms alone, B H T."""
        return None

    def by_head(self) -> tuple[Tensor, ...]:
        """Tensors that the map is made of, H first."""
        return ()

    def parameters(self, batch: int) -> tuple[Tensor, ...]:
        """Tensors that the chunked form takes, G first."""
        return tuple(x.repeat(batch, 1, 1) for x in self.by_head())

    def chunk(self, x: Tensor, *parameters: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Features of G T D, over the scale.  Raises TypeError if the map has no chunked form."""
        raise TypeError(f"{type(self).__name__} has no chunked form")

    def chunk_backward(
        self, d: Tensor, features: Tensor, saved: tuple[Tensor, ...], gradients: Sequence[Tensor], *parameters: Tensor
    ) -> Tensor:
        """Gradient for x from that of the features, which may be overwritten; as `chunk`."""
        raise TypeError(f"{type(self).__name__} has no chunked form")


class EluMap(FeatureMap):
    """elu(x) + 1, positive (Katharopoulos et al. 2020, eq. 7)."""

    chunked = True
    kind = 1

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """exp(x) below 0 and x + 1 above, which is faster than elu."""
        return x.clamp(max=0.0).exp() + x.relu(), None

    def chunk(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        return x.clamp(max=0.0).exp_().add_(x.clamp(min=0.0)), ()

    def chunk_backward(
        self, d: Tensor, features: Tensor, saved: tuple[Tensor, ...], gradients: Sequence[Tensor]
    ) -> Tensor:
        return d.mul_(features.clamp(max=1.0))  # elu's derivative is the feature itself, 1 at most


class ProjectedMap(FeatureMap):
    """Functions of w . x for the rows w of each head's matrix, of x or of x over its norm."""

    chunked = True

    def __init__(self, projection: Tensor, normed: bool):
        """projection: H M D; normed: whether x is scaled to norm 1 first."""
        self.projection = projection
        self.normed = normed

    def by_head(self) -> tuple[Tensor, ...]:
        return (self.projection,)

    def projected(self, x: Tensor, rows: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """w . x, G T M; and x as it was projected, with the factor that scaled it."""
        if not self.normed:
            return torch.bmm(x, rows.transpose(1, 2)), (x,)
        norm = torch.linalg.vector_norm(x, dim=2, keepdim=True)
        factor = norm.masked_fill_(norm == 0, 1.0).reciprocal_()
        unit = x * factor
        return torch.bmm(unit, rows.transpose(1, 2)), (unit, factor)

    def projected_backward(self, d: Tensor, saved: tuple[Tensor, ...], d_rows: Tensor, rows: Tensor) -> Tensor:
        """Gradient for x from that of w . x."""
        unit, *factor = saved
        d_rows.baddbmm_(d.transpose(1, 2), unit)
        d_x = torch.bmm(d, rows)
        if not factor:
            return d_x
        along = (unit * d_x).sum(2, keepdim=True)
        return d_x.addcmul_(unit, along, value=-1).mul_(factor[0])


class GaussianMap(ProjectedMap):
    """Sines and cosines (Peng 2022, eq. 4.2), with the factors of equation 4.10 where x is not of norm 1."""

    kind = 2

    def __init__(self, projection: Tensor, normed: bool, sigma: Tensor):
        """sigma: H D, contained in the projection already."""
        super().__init__(projection, normed)
        self.sigma = sigma
        self.scale = projection.size(1) ** -0.5

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """`gaussian_features` and log C(x) of equation 4.10."""
        log_scale = self.log_scale(x)
        return gaussian_features(unit_norm(x) if self.normed else x, self.projection), log_scale

    def log_scale(self, x: Tensor) -> Tensor | None:
        """|sigma o x|^2 / 2 where x is not scaled to norm 1."""
        return None if self.normed else (x * self.sigma.unsqueeze(1)).square().sum(-1) / 2

    def chunk(self, x: Tensor, rows: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        angles, saved = self.projected(x, rows)
        size = angles.size(2)
        features = angles.new_empty(*angles.shape[:2], 2 * size)
        torch.sin(angles, out=features[..., :size])
        torch.cos(angles, out=features[..., size:])
        return features, saved

    def chunk_backward(
        self, d: Tensor, features: Tensor, saved: tuple[Tensor, ...], gradients: Sequence[Tensor], rows: Tensor
    ) -> Tensor:
        sine, cosine = features.chunk(2, -1)
        d_sine, d_cosine = d.chunk(2, -1)
        return self.projected_backward((d_sine * cosine).addcmul_(d_cosine, sine, value=-1), saved, gradients[0], rows)


class ReluMap(ProjectedMap):
    """relu(w . x), or relu(w . x + b) where a bias is among the parameters."""

    kind = 3

    def chunk(self, x: Tensor, rows: Tensor, *bias: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        features, saved = self.projected(x, rows)
        return (features.add_(*bias) if bias else features).relu_(), saved

    def chunk_backward(
        self, d: Tensor, features: Tensor, saved: tuple[Tensor, ...], gradients: Sequence[Tensor], rows: Tensor,
        *bias: Tensor,
    ) -> Tensor:
        d = d.masked_fill_(features == 0, 0.0)
        if bias:
            gradients[1].add_(d.sum(1, keepdim=True))
        return self.projected_backward(d, saved, gradients[0], rows)


class ArccosMap(ReluMap):
    """relu(w . x), of the arc-cosine kernel (Peng 2022, sec. 4.3.3)."""

    def __init__(self, projection: Tensor, normed: bool):
        super().__init__(projection, normed)
        self.scale = projection.size(1) ** -0.5

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        return arccos_features(unit_norm(x) if self.normed else x, self.projection), None


class LearnedMap(ReluMap):
    """relu(W x + b) (Kasai et al. 2021)."""

    def __init__(self, weight: Tensor, bias: Tensor):
        """weight: H N D; bias: H 1 N."""
        super().__init__(weight, False)
        self.bias = bias

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        return (project(x, self.projection) + self.bias).relu(), None

    def by_head(self) -> tuple[Tensor, ...]:
        return self.projection, self.bias


class PositiveMap(FeatureMap):
    """Positive random features of x times a factor (Choromanski et al. 2021): all positions at once alone."""

    def __init__(self, projection: Tensor, factor: float, hyperbolic: bool):
        """projection: H M D; see `positive_features`."""
        self.projection, self.factor, self.hyperbolic = projection, factor, hyperbolic

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        return positive_features(x * self.factor, self.projection, self.hyperbolic)


def chunked_map(kind: int, normed: bool) -> FeatureMap | None:
    """A map of this number, for its chunked form alone; None for 0."""
    found = {0: None, 1: EluMap, 2: GaussianMap, 3: ArccosMap}[kind]  # of ReluMap's chunks any kind serves
    if found is None:
        return None
    features = object.__new__(found)
    features.normed = normed
    return features
