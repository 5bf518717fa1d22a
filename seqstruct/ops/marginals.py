"""What a distribution over structures answers: log-partition, marginals, the best structure, samples.

A family of structures (paths, projective trees) has a definition, the sum over all of them for any semiring, and a pair
of passes over its parts in scaled probability space: the first finds log-partition and marginals, the second the
derivative of the marginals along a direction, which is both their gradient and the second one of the log-partition,
as these matrices are symmetric.  Rows for which the range of float64 does not do in this way go through autograd over
the definition, in pairs of logarithms: exact for any potentials, and slower; where the host may not look which ones
these are, as while a CUDA graph is captured, they are NaN.  The best structure and samples are the
gradients of the definition over other semirings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.gpu import host_may_look
from seqstruct.ops.semiring import EntropySemiring, ExactLogSemiring, LogSemiring
from seqstruct.ops.workspace import Loan

Parts = tuple[Tensor, ...]  # one tensor for each kind of log potentials, the batch first


class FirstPass(NamedTuple):
    """What the first pass finds, float64.

    marginals: in the shapes of the potentials; log_partition: B, or None; exact: B bool, the rows for which both are
    right.
    kept: a named tuple of the tensors that the second pass needs, None where the marginals are differentiable as they
    are; loan: what holds those of them that are borrowed.
    """

    marginals: Parts
    log_partition: Tensor | None
    exact: Tensor
    kept: Any
    loan: Loan | None


class Family(Protocol):
    """All structures of each row of a batch; what padded positions hold does not matter."""

    def select(self, rows: Tensor) -> Family:
        """The family of some of the rows, R long."""

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        """What the semiring says of all structures, B, from log potentials in float64; differentiable."""

    def first_pass(self, potentials: Parts, need_total: bool) -> FirstPass:
        """From potentials of any floating type; without need_total the log-partition may be None.

        To autograd, a constant, unless `kept` is None.
        """

    def second_pass(self, kept: Any, loan: Loan | None, direction: tuple[Tensor | None, ...]) -> Parts:
        """Derivatives of the marginals in a direction of the log potentials, None for 0."""

    def refuse(self, potentials: Parts) -> None:
        """Raise ValueError, naming the place, if a log potential is no number."""


def log_partition(family: Family, *potentials: Tensor) -> Tensor:
    """B, in nats, in the type of the potentials; twice differentiable."""
    with torch.no_grad():
        done, rows = _scaled(family, potentials, need_total=True)
    found = _LogPartition.apply(family, done, rows, *potentials)
    if rows is None:
        return found
    few, chosen = _some(family, potentials, rows)
    exceptions = few.total(chosen, ExactLogSemiring())
    _check(exceptions, family, potentials)
    return found.index_copy(0, rows, exceptions.to(found.dtype))


def marginals(family: Family, *potentials: Tensor) -> Parts:
    """The probability of each part, in the shapes and the type of the potentials; differentiable once."""
    found, rows = _with_derivative(family, potentials)
    if rows is None:
        return found
    grad = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(grad):
        few, chosen = _some(family, potentials, rows)
        total, exceptions = by_autograd(lambda *x: few.total(x, ExactLogSemiring()), *chosen)
    _check(total, family, potentials)
    return tuple(x.index_copy(0, rows, y.to(x.dtype)) for x, y in zip(found, exceptions, strict=True))


def entropy(family: Family, *potentials: Tensor) -> Tensor:
    """B, in nats, in the type of the potentials; 0 where nothing is possible; differentiable.

    By the definition for all rows, where no term is negative: large potentials cost no digits.
    """
    found = family.total(tuple(x.double() for x in potentials), EntropySemiring())
    _check(found, family, potentials)
    return found.to(potentials[0].dtype)


def structure(family: Family, semiring: LogSemiring, *potentials: Tensor) -> tuple[Tensor, Tensor]:
    """Indicators of the parts, of the first kind of potentials, to which the gradient of a total goes; the total, B."""
    few, chosen = family, potentials
    if torch.is_inference_mode_enabled() or any(x.is_inference() for x in potentials):
        with torch.inference_mode(False):
            few, chosen = _some(family, potentials, torch.arange(len(potentials[0]), device=potentials[0].device))
    first, *others = (x.detach().double() for x in chosen)
    total, (indicators,) = by_autograd(lambda x: few.total((x, *others), semiring), first)
    _check(total, family, potentials)
    return indicators, total


def by_autograd(total: Callable[..., Tensor], *potentials: Tensor) -> tuple[Tensor, Parts]:
    """total(*potentials), B, and its derivatives; differentiable where the potentials want a gradient.

    In inference mode too, where what the total has beside its arguments is `recordable`.
    """
    wanted = torch.is_grad_enabled() and any(x.requires_grad for x in potentials)
    with torch.inference_mode(False), torch.enable_grad():
        leaves = [x if wanted and x.requires_grad else recordable(x.detach()).requires_grad_() for x in potentials]
        found = total(*leaves)
        derivatives = torch.autograd.grad(found.sum(), leaves, create_graph=wanted, materialize_grads=True)
    return (found, derivatives) if wanted else (found.detach(), derivatives)


def recordable(x: Tensor) -> Tensor:
    """A copy of what was made in inference mode, outside of it; else the tensor itself."""
    return x.clone() if x.is_inference() and not torch.is_inference_mode_enabled() else x


def _scaled(family: Family, potentials: Parts, need_total: bool) -> tuple[FirstPass, Tensor | None]:
    """The first pass, and the rows that it does not do, R long, where marginals are 0; None if it does all."""
    done = family.first_pass(potentials, need_total)
    if not host_may_look(done.exact):
        outside = (~done.exact).view
        found = [
            x if x is None else x.masked_fill(outside(-1, *[1] * (x.dim() - 1)), torch.nan)
            for x in (*done.marginals, done.log_partition)
        ]
        return done._replace(marginals=tuple(found[:-1]), log_partition=found[-1]), None
    if bool(done.exact.all()):
        return done, None
    rows = (~done.exact).nonzero().squeeze(1)
    return done._replace(marginals=tuple(x.index_fill(0, rows, 0.0) for x in done.marginals)), rows


def _with_derivative(family: Family, potentials: Parts) -> tuple[Parts, Tensor | None]:
    """The marginals of the first pass, differentiable, and the rows that it does not do."""
    done, rows = _scaled(family, potentials, need_total=False)
    return done.marginals if done.kept is None else _Marginals.apply(family, done, rows, *potentials), rows


def _some(family: Family, potentials: Parts, rows: Tensor) -> tuple[Family, Parts]:
    return family.select(rows), tuple(x.index_select(0, rows).double() for x in potentials)


def _check(total: Tensor, family: Family, potentials: Parts) -> None:
    """Look for what is no number only where a total is not finite."""
    if host_may_look(total) and not bool(total.isfinite().all()):
        family.refuse(potentials)


class _Marginals(torch.autograd.Function):
    @staticmethod
    def forward(ctx, family: Family, done: FirstPass, rows: Tensor | None, *potentials: Tensor) -> Parts:
        ctx.family, ctx.loan, ctx.kept = family, done.loan, type(done.kept)
        ctx.save_for_backward(rows, *done.kept)
        ctx.set_materialize_grads(False)
        return tuple(x.to(potentials[0].dtype) for x in done.marginals)

    @staticmethod
    @first_derivatives_only
    def backward(ctx, *direction: Tensor | None) -> tuple[Tensor | None, ...]:
        dtypes = [x.dtype for x in direction if x is not None]
        if not dtypes:
            return None, None, None, *direction
        rows, *kept = ctx.saved_tensors
        found = ctx.family.second_pass(ctx.kept(*kept), ctx.loan, direction)
        if rows is not None:
            found = tuple(x.index_fill(0, rows, 0.0) for x in found)
        return None, None, None, *(x.to(dtypes[0]) for x in found)


class _LogPartition(torch.autograd.Function):
    """Its gradient is the marginals, as a function of the potentials where a second derivative is wanted."""

    @staticmethod
    def forward(ctx, family: Family, done: FirstPass, rows: Tensor | None, *potentials: Tensor) -> Tensor:
        ctx.family, dtype = family, potentials[0].dtype
        ctx.save_for_backward(*potentials, *(x.to(dtype) for x in done.marginals))
        return done.log_partition.to(dtype)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        potentials, found = saved[: len(saved) // 2], saved[len(saved) // 2 :]
        if torch.is_grad_enabled():
            found, _ = _with_derivative(ctx.family, potentials)
        return None, None, None, *(x * grad.view(-1, *[1] * (x.dim() - 1)) for x in found)
