"""Structured argmax as a layer with a chosen backward pass (Peng 2022, chapter 2: SPIGOT).

The forward pass decodes: it gives the 0/1 vector of the best structure's parts.  Its derivative is 0 almost everywhere,
so the backward pass takes a surrogate:

* "pipeline": no gradient at all;
* "ste": step_size times the gradient of the output, as if the layer were the identity (straight-through, Hinton 2012,
  at a step size of 1); where a part is in no structure, as an arc of a word to itself, the caller masks its score, or
  the step would reach that too;
* "spigot": z - proj(z - step_size * gradient), eq. 2.4: the same step, kept within the relaxed polytope;
* "marginal": no argmax, but the marginals of all structures with their exact gradient (Kim et al. 2017).

A new structure needs a decoder and a projection.  Choosing k of n, say, with scores B n:

    def decode(scores):
        return torch.zeros_like(scores).scatter(-1, scores.topk(k).indices, 1.0)

    def project(point):  # onto {0 <= p <= 1, sum p = k}: the threshold by bisection
        low, high = point.amin(-1, keepdim=True) - 1, point.amax(-1, keepdim=True)
        for _ in range(60):
            middle = (low + high) / 2
            above = (point - middle).clamp(0, 1).sum(-1, keepdim=True) > k
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        return (point - low).clamp(0, 1)

    chosen = structured_argmax(scores, decode, gradient="spigot", project=project)
"""

from __future__ import annotations

from typing import Callable

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.opaque import opaque
from seqstruct.ops.trees.layout import aligned_arcs, banned_arcs
from seqstruct.ops.trees.projection import project_dependencies
from seqstruct.ops.trees.projective import projective_best_tree, projective_marginals

GRADIENTS = ("pipeline", "ste", "spigot", "marginal")


def structured_argmax(
    scores: Tensor,
    decode: Callable[[Tensor], Tensor],
    *,
    gradient: str,
    project: Callable[[Tensor], Tensor] | None = None,
    marginals: Callable[[Tensor], Tensor] | None = None,
    step_size: float = 1.0,
) -> Tensor:
    """The best structure's parts, of the shape of the scores, with the surrogate gradient that is asked for.

    scores: any shape, log space, one for each part.  decode: scores -> 0/1 parts; it sees them detached.
    gradient: one of GRADIENTS.  project: the Euclidean projection onto the relaxed polytope, for "spigot".
    marginals: scores -> probabilities of the parts, differentiable, for "marginal" (whose output is not 0/1).
    step_size: eta of eq. 2.4, above 0, of "ste" too.  The decoder's and the projection's own cost, no more.
    Raises ValueError if the gradient is unknown, what it needs is missing, the step size is not above 0, or the decoder
    returns another shape.
    """
    if gradient not in GRADIENTS:
        raise ValueError(f"expected a gradient of {', '.join(GRADIENTS)}, got {gradient!r}")
    if not step_size > 0:
        raise ValueError(f"expected a step size above 0, got {step_size}")
    if gradient == "marginal":
        if marginals is None:
            raise ValueError("gradient 'marginal' needs the function of the marginals, got None")
        return marginals(scores)
    if gradient == "spigot" and project is None:
        raise ValueError("gradient 'spigot' needs a projection, got None")
    with torch.no_grad():
        parts = decode(scores.detach()).to(scores.dtype)
    if parts.shape != scores.shape:
        raise ValueError(f"expected a decoder that keeps the shape {tuple(scores.shape)}, got {tuple(parts.shape)}")
    if gradient == "pipeline":
        return parts
    return _Surrogate.apply(scores, parts, project if gradient == "spigot" else None, step_size)


def dependency_argmax(
    arcs: Tensor,
    padding_mask: Tensor | None = None,
    *,
    gradient: str,
    step_size: float = 1.0,
    single_root: bool = False,
) -> Tensor:
    """The arcs of the best projective tree, B n+1 n+1 of 0 and 1 (marginals for "marginal"), as `structured_argmax`.

    arcs: B n+1 n+1, [b, h, m] scores that word m takes the head h; position 0 is the root symbol.
    padding_mask: B n over the words, True = padding, or None.  The backward pass of "spigot" projects onto eq. 2.5.
    Arcs that no tree has, of a word to itself, of the root as a dependent and of padding, have no gradient.
    O(B n^3) for decoding, O(B n^2 log n) for the projection.
    """
    return _dependency_argmax(arcs, padding_mask, gradient, float(step_size), single_root)


@opaque(lambda arcs, *_: arcs.new_empty(arcs.shape))
def _dependency_argmax(
    arcs: Tensor, padding_mask: Tensor | None, gradient: str, step_size: float, single_root: bool
) -> Tensor:

    def decode(scores: Tensor) -> Tensor:
        heads = projective_best_tree(scores, padding_mask, single_root=single_root).heads  # B n
        parts = torch.zeros_like(scores)
        parts[:, :, 1:].scatter_(1, heads.clamp(min=0).unsqueeze(1), (heads >= 0).to(scores.dtype).unsqueeze(1))
        return parts

    aligned_arcs(arcs, padding_mask)  # for its errors
    banned = banned_arcs(arcs, None if padding_mask is None else ~padding_mask)
    return structured_argmax(
        arcs.masked_fill(banned, 0.0), decode, gradient=gradient, step_size=step_size,
        project=lambda point: project_dependencies(point, padding_mask),
        marginals=lambda scores: projective_marginals(scores, padding_mask, single_root=single_root),
    )


class _Surrogate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor, parts: Tensor, project: Callable | None, step_size: float) -> Tensor:
        ctx.save_for_backward(parts)
        ctx.project, ctx.step_size = project, step_size
        return parts.clone()

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None, None]:
        if ctx.project is None:
            return ctx.step_size * grad, None, None, None
        (parts,) = ctx.saved_tensors
        return parts - ctx.project(parts - ctx.step_size * grad), None, None, None
