"""Semirings: one recursion gives a sum over all structures, the best one, a sample, the entropy.

An element is a tensor with an axis of components in front (one component, except where said otherwise); a chart calls
`lift` on log potentials, combines elements by `times` and `sum`, and ends with `value`.  The gradient of `value` with
respect to the log potentials is, part by part of the structure: the marginals (log), one best structure (max), a
structure drawn from the distribution (sampling).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only


class LogSemiring:
    """(logaddexp, +): `value` is the log-partition, in nats."""

    def lift(self, log_potentials: Tensor) -> Tensor:
        """Log potentials of any shape as elements, 1 x that shape."""
        return log_potentials.unsqueeze(0)

    def zero(self, shape: Sequence[int], like: Tensor) -> Tensor:
        """The neutral element of `sum`, of the data type and device of `like`."""
        return self.lift(like.new_full(shape, -torch.inf))

    def one(self, shape: Sequence[int], like: Tensor) -> Tensor:
        """The neutral element of `times`."""
        return self.lift(like.new_zeros(shape))

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        """The product of elements, broadcast."""
        return left + right

    def sum(self, terms: Tensor, dim: int) -> Tensor:
        """The sum over an axis counted from the end."""
        return log_sum(terms, dim)

    def add(self, left: Tensor, right: Tensor) -> Tensor:
        """The sum of two elements, broadcast."""
        return self.sum(torch.stack(torch.broadcast_tensors(left, right), -1), -1)

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        """The product of matrices of elements: .. N M of .. N K and .. K M."""
        return self.sum(self.times(left.unsqueeze(-1), right.unsqueeze(-3)), -2)

    def value(self, total: Tensor) -> Tensor:
        """What the recursion is run for, without the axis of components."""
        return total[0]


class MaxSemiring(LogSemiring):
    """(max, +): `value` is the score of the best structure; of equal terms the gradient goes to one alone."""

    def sum(self, terms: Tensor, dim: int) -> Tensor:
        return terms.max(dim).values


class KBestSemiring(LogSemiring):
    """(the k greatest of all terms, + of all pairs): elements have k components, the greatest first, -inf if fewer are.

    `value` is the scores of the k best structures, k B; the gradient of one of them is that structure.
    """

    def __init__(self, k: int) -> None:
        self.k = k

    def lift(self, log_potentials: Tensor) -> Tensor:
        """One structure, and k - 1 that do not exist."""
        absent = log_potentials.new_full((self.k - 1, *log_potentials.shape), -torch.inf)
        return torch.cat([log_potentials.unsqueeze(0), absent])

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        return (left.unsqueeze(1) + right.unsqueeze(0)).flatten(0, 1).topk(self.k, 0).values

    def sum(self, terms: Tensor, dim: int) -> Tensor:
        return terms.movedim(dim, 1).flatten(0, 1).topk(self.k, 0).values

    def value(self, total: Tensor) -> Tensor:
        return total


class RealSemiring(LogSemiring):
    """(+, x) of probabilities: `value` is the partition function itself, with the range of the data type."""

    def lift(self, log_potentials: Tensor) -> Tensor:
        return log_potentials.exp().unsqueeze(0)

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        return left * right

    def sum(self, terms: Tensor, dim: int) -> Tensor:
        return terms.sum(dim)


class ExactLogSemiring(LogSemiring):
    """The log semiring in pairs: a logarithm is a sum of two, of which the first may be very large.

    No digits of the second are lost beside it: -1e30 on all structures, wherever they have it, changes nothing else.
    The first is a constant to derivatives.  The second is what rounding took from the first: small, however many terms
    were added up.
    """

    def lift(self, log_potentials: Tensor) -> Tensor:
        """The number itself, and 0."""
        whole = log_potentials.detach()
        return torch.stack([whole, (log_potentials - whole).masked_fill(whole == -torch.inf, 0.0)])

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        """The product; what rounding takes from the first goes to the second."""
        whole, lost = add_exactly(left[0].detach(), right[0].detach())
        return torch.stack([whole, left[1] + right[1] + lost])

    def inverse(self, element: Tensor) -> Tensor:
        """1 divided by an element; 1 of one that is zero."""
        return (-element).masked_fill(element[0] == -torch.inf, 0.0)

    def sum(self, terms: Tensor, dim: int) -> Tensor:
        """Logsumexp beside the greatest term."""
        whole, rest = self._relative(terms, dim)
        return torch.stack(self._pair(whole, rest.logsumexp(dim)))

    def value(self, total: Tensor) -> Tensor:
        return total[0].detach() + total[1]

    def _relative(self, terms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        """The greatest of the first numbers, and terms less that; zeros where all of them are impossible."""
        first = terms[0].detach()
        whole = first.amax(dim)
        none = whole == -torch.inf
        rest = first - whole.masked_fill(none, 0.0).unsqueeze(dim) + terms[1]
        return whole, rest.masked_fill(none.unsqueeze(dim), 0.0)

    def _pair(self, whole: Tensor, more: Tensor) -> tuple[Tensor, Tensor]:
        """Their sum: all goes to the first number but for what rounding takes and derivatives."""
        known = more.detach()
        whole, lost = add_exactly(whole, known)
        return whole, more - known + lost


class EntropySemiring(ExactLogSemiring):
    """Beside a log-partition, the entropy of the distribution it normalises: `value` is the entropy, in nats.

    The entropy of a choice between sets of structures with shares p_i and entropies h_i is
    sum_i p_i (h_i - log p_i); independent parts add up, and what is divided by is taken away.
    """

    def lift(self, log_potentials: Tensor) -> Tensor:
        """A single structure has no entropy."""
        return torch.cat([super().lift(log_potentials), torch.zeros_like(log_potentials).unsqueeze(0)])

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        """Elementwise product of weights."""
        return torch.cat([super().times(left, right), (left[2] + right[2]).unsqueeze(0)])

    def sum(self, terms: Tensor, dim: int) -> Tensor:
        """The choice between terms."""
        whole, weights = self._relative(terms, dim)
        total = weights.logsumexp(dim)
        impossible = weights == -torch.inf
        surprisal = (total.unsqueeze(dim) - weights).masked_fill(impossible, 0.0)
        shares = (-surprisal).exp().masked_fill(impossible, 0.0)
        entropy = (shares * (terms[2] + surprisal)).sum(dim).masked_fill(whole == -torch.inf, 0.0)
        return torch.stack([*self._pair(whole, total), entropy])

    def value(self, total: Tensor) -> Tensor:
        """The entropy, in nats, of a total."""
        return total[2]


class SamplingSemiring(LogSemiring):
    """The log semiring, whose backward pass follows one term drawn by its share instead of all terms.

    generator: the source of random numbers, on the device of the potentials.  First derivatives only.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator

    def sum(self, terms: Tensor, dim: int) -> Tensor:
        """Logsumexp; its gradient is one-hot, drawn anew in every backward pass."""
        return _DrawnSum.apply(terms, dim, self.generator)


def add_exactly(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """x + y and what rounding took from it (Knuth's two-sum), 0 where the sum is -inf."""
    total = x + y
    part = total - x
    return total, ((x - (total - part)) + (y - part)).masked_fill_(total == -torch.inf, 0.0)


def log_sum(terms: Tensor, dim: int) -> Tensor:
    """Logsumexp over an axis; where all terms are -inf, -inf with derivatives 0."""
    none = (terms == -torch.inf).all(dim, keepdim=True)
    return terms.masked_fill(none, 0.0).logsumexp(dim).masked_fill(none.squeeze(dim), -torch.inf)


def shares(terms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Logsumexp and softmax over an axis; where all terms are -inf, -inf and zeros with derivatives 0."""
    none = (terms == -torch.inf).all(dim, keepdim=True)
    possible = terms.masked_fill(none, 0.0)
    total = possible.logsumexp(dim).masked_fill(none.squeeze(dim), -torch.inf)
    return total, possible.softmax(dim).masked_fill(none, 0.0)


class _DrawnSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, terms: Tensor, dim: int, generator: torch.Generator) -> Tensor:
        total = log_sum(terms, dim)
        ctx.save_for_backward(terms, total)
        ctx.dim, ctx.generator = dim, generator
        return total

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        terms, total = ctx.saved_tensors
        limit = total.unsqueeze(ctx.dim).clamp(min=torch.finfo(terms.dtype).min)
        cumulated = (terms - limit).exp().cumsum(ctx.dim)
        last = cumulated.narrow(ctx.dim, cumulated.size(ctx.dim) - 1, 1)
        # 1 - rand is in (0, 1]: a term of share 0 is never the first whose cumulated share reaches it.
        height = 1 - torch.rand(last.shape, dtype=terms.dtype, device=terms.device, generator=ctx.generator)
        drawn = (cumulated < height * last).sum(ctx.dim, keepdim=True)
        drawn.clamp_(max=terms.size(ctx.dim) - 1)
        return torch.zeros_like(terms).scatter_(ctx.dim, drawn, grad.unsqueeze(ctx.dim)), None, None
