"""What all distributions over structures share.

A structure is the set of its parts (a state at a position, an arc, a span); its score is the sum of its parts' log
potentials, its probability in proportion to exp(score).  A subclass says which sets of parts are structures, by one
recursion over any semiring; by it everything is answered (Goodman 1999; Li and Eisner 2009): the log-partition, the
best structures, samples and the entropy, and by derivatives the probabilities of parts (Eisner 2016).  Operators made
for one family stand in where `seqstruct.ops` has them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.gpu import host_may_look
from seqstruct.ops.log_potentials import LARGEST_POTENTIAL, refuse_what_is_no_number
from seqstruct.ops.marginals import by_autograd, recordable
from seqstruct.ops.masking import fails
from seqstruct.ops.max_marginals import max_marginals
from seqstruct.ops.semiring import (
    EntropySemiring,
    ExactLogSemiring,
    KBestSemiring,
    LogSemiring,
    MaxSemiring,
    SamplingSemiring,
)

Parts = tuple[Tensor, ...]


class TopK(NamedTuple):
    """events: k x batch x event, the best first; scores: k x batch, -inf where there are fewer (the event is zeros)."""

    events: Any
    scores: Tensor


class StructuredDistribution:
    """Base of all; * stands for the axes of a batch, of which there may be any number.

    An event is a tensor of 0 and 1 of the shape of the log potentials, or a named tuple of several where parts are of
    several kinds.  Log potentials are real numbers or -inf (impossible), of any size, of one floating type; all is
    calculated in float64 and returned in that type.  What stands at parts that lie beyond a row's length, or that no
    structure has, does not matter.  A row of length 0 has one structure, the empty one, unless its class says
    otherwise.  Where no structure is possible the log-partition is -inf, marginals, entropies and divergences are 0,
    and events are zeros.

    All answers are methods, calculated when called.  `log_partition`, `log_prob`, `marginals`, `entropy`,
    `cross_entropy` and `kl_divergence` are differentiable, the first two twice; others have no gradient.
    Raises ValueError on shapes that do not fit, and naming the place if a potential is NaN or +inf (looked for only
    where a result is not finite).
    """

    kinds: ClassVar[tuple[str, ...]] = ("potentials",)
    ranks: ClassVar[tuple[int, ...]] = (2,)  # axes of an event, of each kind
    Event: ClassVar[Callable[..., Any]] = staticmethod(lambda part: part)
    of_rows: ClassVar[tuple[str, ...]] = ("potentials", "lengths")  # attributes that have a batch

    def __init__(self, *potentials: Tensor, lengths: Tensor | None = None) -> None:
        """lengths: *, long, of each row, on any device; None for the greatest."""
        names = dict(zip(self.kinds, potentials, strict=True))
        batches = {x.shape[: x.dim() - rank] for x, rank in zip(potentials, self.ranks, strict=True)}
        short = any(x.dim() < rank for x, rank in zip(potentials, self.ranks, strict=True))
        floating = len({x.dtype for x in potentials}) == 1 and potentials[0].is_floating_point()
        if short or len(batches) != 1 or not floating:
            given = ", ".join(f"{name} {tuple(x.shape)} {x.dtype}" for name, x in names.items())
            raise ValueError(f"expected potentials of one batch and one floating type, got {given}")
        (self.batch_shape,) = batches
        self.potentials: Parts = tuple(self._flat(x) for x in potentials)
        self.full = lengths is None
        self.lengths = self._up_to("lengths", lengths, self.greatest_length())

    def __repr__(self) -> str:
        shapes = zip(self.kinds, self.potentials, strict=True)
        parts = [f"{name} {tuple(self.batch_shape + x.shape[1:])}" for name, x in shapes]
        return f"{type(self).__name__}({', '.join(parts)}, lengths {self.lengths.tolist()})"

    def greatest_length(self) -> int:
        """The length that the shapes allow."""
        return self.potentials[0].size(1)

    def mask(self) -> Parts:
        """Bool, in shapes that broadcast with the potentials: which parts there are, by lengths."""
        raise TypeError(f"{type(self).__name__} defines no parts")

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        """What the semiring says of all structures, B, from masked potentials in float64; each part is lifted once."""
        raise TypeError(f"{type(self).__name__} defines no structures")

    def log_partition(self) -> Tensor:
        """Logarithm of the sum over all structures of exp(score), *, in nats."""
        return self._batch(self._log_partition())

    def marginals(self) -> Any:
        """The probability that a structure has a part, in the shape of an event."""
        return self._event(self._marginals())

    def log_prob(self, value: Any) -> Tensor:
        """Of events of shape sample x * x event, 0 and 1: sample x *, in nats.

        -inf where a part is impossible.  That a value is a structure is not looked at: `contains` does.
        """
        total, score = self._in_double().log_partition(), self._score(value)
        found = score - total.masked_fill(total == -torch.inf, 0.0)
        return torch.where(score == -torch.inf, score, found).to(self.dtype)

    def contains(self, value: Any) -> Tensor:
        """Whether values, as for `log_prob`, are structures of this family, whatever their potentials; sample x * bool.

        Parts that are there count 1, others -inf: a structure of them has all if it scores as many.
        """
        parts, sample = self._parts(value)
        rows = self.expand((*sample, *self.batch_shape))
        given = [rows._flat(x) for x in parts]
        rows.potentials = tuple(torch.where(x == 1, 1.0, -torch.inf).double() for x in given)
        outside = [(x != 0) & ~((x == 1) & m) for x, m in zip(given, rows.mask(), strict=True)]
        count = sum((x == 1).flatten(1).sum(1) for x in given)
        found = (rows._best() == count) & ~torch.stack([x.flatten(1).any(1) for x in outside]).any(0)
        return rows._batch(found)

    def argmax(self) -> Any:
        """The structure of the greatest score, of several one, without preference."""
        return self._event(self._argmax())

    def topk(self, k: int) -> TopK:
        """The k best structures; raises ValueError unless k is 1 or more."""
        if k < 1:
            raise ValueError(f"expected k of 1 or more, got {k}")
        events, scores = self._topk(k)
        return TopK(self._event(events, (k,)), self._batch(scores, (k,)))

    def sample(self, sample_shape: Sequence[int] = (), *, generator: torch.Generator) -> Any:
        """Structures drawn independently, sample x * x event; generator: on the device of the potentials."""
        shape = torch.Size(sample_shape)
        if shape.numel() == 0:
            return self._event([x.new_zeros(0, *x.shape[1:]) for x in self.potentials], shape)
        rows = self._map(lambda x: x.detach().repeat(shape.numel(), *[1] * (x.dim() - 1)))
        return self._event(rows._draw(generator), shape)

    def max_marginals(self) -> Any:
        """Of each part the score of the best structure that has it, in the shape of an event; -inf if there is none."""
        return self._event(self._max_marginals())

    def entropy(self) -> Tensor:
        """-sum p log p, *, in nats; no term is negative, so that large potentials cost no digits."""
        return self._batch(self._entropy())

    def cross_entropy(self, other: StructuredDistribution) -> Tensor:
        """-sum p log q under this p and the other q, *, in nats: +inf where q excludes what p has.

        Raises ValueError, as `kl_divergence` does, unless what is a structure of p's family is one of q's.
        """
        return self._batch(self._beside(other, lambda p, q: -q)[0])

    def kl_divergence(self, other: StructuredDistribution) -> Tensor:
        """sum p log(p / q) under this p and the other q, *, in nats: +inf where q excludes what p has."""
        return self._batch(torch.sub(*self._beside(other, lambda p, q: p - q)))

    def expand(self, batch_shape: Sequence[int]) -> StructuredDistribution:
        """The same distributions for a greater batch, which broadcasts with this one."""
        shape = torch.Size(batch_shape)

        def change(x: Tensor) -> Tensor:
            event = x.shape[1:]
            return x.reshape((*self.batch_shape, *event)).expand((*shape, *event)).reshape((shape.numel(), *event))

        found = self._map(change)
        found.batch_shape = shape
        return found

    @property
    def event_shape(self) -> Any:
        """Of an event without its batch: a shape, or a named tuple of several as an event is."""
        return type(self).Event(*(x.shape[1:] for x in self.potentials))

    @property
    def dtype(self) -> torch.dtype:
        """That of potentials, events and all else."""
        return self.potentials[0].dtype

    # Below, rows: the batch as one axis.

    def _rows(self) -> Tensor:
        return torch.arange(len(self.lengths), device=self.lengths.device)

    def _flat(self, x: Tensor) -> Tensor:
        return x.reshape(self.batch_shape.numel(), *x.shape[len(self.batch_shape) :])

    def _batch(self, x: Tensor, sample: Sequence[int] = ()) -> Tensor:
        x = x.to(self.dtype) if x.is_floating_point() else x
        return x.reshape((*sample, *self.batch_shape))

    def _event(self, parts: Sequence[Tensor], sample: Sequence[int] = ()) -> Any:
        shapes = [(*sample, *self.batch_shape, *x.shape[1:]) for x in self.potentials]
        found = [x.to(y.dtype).reshape(shape) for x, y, shape in zip(parts, self.potentials, shapes, strict=True)]
        return type(self).Event(*found)

    def _parts(self, value: Any) -> tuple[Parts, torch.Size]:
        """Of an event, and the shape of its sample."""
        parts = value if isinstance(value, tuple) else (value,)
        shapes = [self.batch_shape + x.shape[1:] for x in self.potentials]
        if len(parts) == len(shapes):
            samples = [x.shape[: max(0, x.dim() - len(shape))] for x, shape in zip(parts, shapes, strict=True)]
            if all(x.shape == samples[0] + shape for x, shape in zip(parts, shapes, strict=True)):
                return parts, samples[0]
        expected = ", ".join(f"{name} .. {tuple(shape)}" for name, shape in zip(self.kinds, shapes, strict=True))
        raise ValueError(f"expected events of {expected}, got {', '.join(str(tuple(x.shape)) for x in parts)}")

    def _map(self, change: Callable[[Tensor], Tensor]) -> StructuredDistribution:
        """The same with all that has rows changed."""
        found = copy.copy(self)
        for name in self.of_rows:
            old = getattr(self, name)
            setattr(found, name, tuple(map(change, old)) if isinstance(old, tuple) else change(old))
        return found

    def _padding(self) -> Tensor | None:
        """B by the greatest length, True behind a row's own; None where no lengths were given."""
        return None if self.full else ~before(self.lengths, self.greatest_length())

    def _in_double(self) -> StructuredDistribution:
        found = copy.copy(self)
        found.potentials = tuple(x.double() for x in self.potentials)
        return found

    def _up_to(self, name: str, given: Tensor | None, most: int) -> Tensor:
        """Of each row, what is given for the batch, or `most`.  Raises ValueError unless it counts up to that."""
        if given is None:
            return torch.full((self.batch_shape.numel(),), most, device=self.potentials[0].device)
        fits = given.shape == self.batch_shape and given.dtype == torch.long
        expected = f"expected {name} {tuple(self.batch_shape)} long from 0 to {most}"
        if not fits or fails((given < 0) | (given > most), expected):
            raise ValueError(f"{expected}, got {given}")
        return given.flatten().to(self.potentials[0].device)

    def _masked(self) -> Parts:
        pairs = zip(self.potentials, self.mask(), strict=True)
        return tuple(x.double().masked_fill(~mask, -torch.inf) for x, mask in pairs)

    def _sums(self, potentials: Parts) -> LogSemiring:
        """In pairs of logarithms where digits would be lost, or might be and the host may not look."""
        if not host_may_look(self.lengths):
            return ExactLogSemiring()
        great = any(bool((x.abs() > LARGEST_POTENTIAL).logical_and_(x > -torch.inf).any()) for x in potentials)
        return ExactLogSemiring() if great else LogSemiring()

    def _checked(self, total: Tensor) -> Tensor:
        if host_may_look(total) and not bool(total.isfinite().all()):
            for name, x in zip(self.kinds, self._masked(), strict=True):
                refuse_what_is_no_number(name, x)
        return total

    def _value(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        """The total, differentiable where there is no part at all too."""
        return self._map(recordable).total(potentials, semiring) + sum(x.flatten()[:0].sum() for x in potentials)

    def _log_partition(self) -> Tensor:
        masked = self._masked()
        return self._checked(self._value(masked, self._sums(masked)))

    def _marginals(self) -> Sequence[Tensor]:
        masked = self._masked()
        semiring = self._sums(masked)
        total, found = by_autograd(lambda *x: self._value(x, semiring), *masked)
        self._checked(total)
        return found

    def _entropy(self) -> Tensor:
        return self._checked(self._value(self._masked(), EntropySemiring()))

    def _best(self) -> Tensor:
        return self.total(tuple(x.detach() for x in self._masked()), MaxSemiring())

    def _argmax(self) -> Sequence[Tensor]:
        return self._pointed_out(MaxSemiring())

    def _draw(self, generator: torch.Generator) -> Sequence[Tensor]:
        return self._pointed_out(SamplingSemiring(generator))

    def _pointed_out(self, semiring: LogSemiring) -> Sequence[Tensor]:
        masked = [x.detach() for x in self._masked()]
        total, parts = by_autograd(lambda *x: self._value(x, semiring), *masked)
        nothing = self._checked(total) == -torch.inf
        return [x.masked_fill(_like(nothing, x), 0.0) for x in parts]

    def _topk(self, k: int) -> tuple[Sequence[Tensor], Tensor]:
        with torch.inference_mode(False), torch.enable_grad():
            masked = [recordable(x.detach()).requires_grad_() for x in self._masked()]
            scores = self._checked(self._value(tuple(masked), KBestSemiring(k)))
            found = [torch.autograd.grad(x.sum(), masked, retain_graph=True, materialize_grads=True) for x in scores]
        events = [torch.stack(x) for x in zip(*found, strict=True)]
        return [x.masked_fill(_like(scores == -torch.inf, x), 0.0) for x in events], scores.detach()

    def _max_marginals(self) -> Sequence[Tensor]:
        def total(potentials: Parts, semiring: LogSemiring) -> Tensor:
            found = self._map(recordable).total(potentials, semiring)
            self._checked(found[0])
            return found

        return max_marginals(total, self._masked())

    def _score(self, value: Any) -> Tensor:
        found = 0.0
        for x, own, rank in zip(self._parts(value)[0], self.potentials, self.ranks, strict=True):
            own = own.double().reshape(*self.batch_shape, *own.shape[1:])
            terms = (x * own.masked_fill(x == 0, 0.0)).masked_fill((own == -torch.inf) & (x != 0), -torch.inf)
            found = found + (terms.flatten(-rank).sum(-1) if rank else terms)
        return found

    def _beside(self, other: StructuredDistribution, term: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """`_expected` and the other's log-partition, and this one's; 0 where this one has no structure."""
        p, q = self._in_double(), other._in_double()
        found, own, others = p._expected(q, term), p._log_partition(), q._log_partition()
        nothing = own == -torch.inf
        total = found + others.masked_fill(others == -torch.inf, 0.0)  # then what is expected is infinite
        return total.masked_fill(nothing, 0.0), own.masked_fill(nothing, 0.0)

    def _within(self, other: StructuredDistribution) -> bool:
        """Whether this one's structures are among those of another of its class, shapes and lengths, masks apart."""
        return True

    def _marginals_beside(self, other: StructuredDistribution) -> Sequence[Tensor]:
        """Those that `_expected` takes: exactly 0 at parts that no structure has, where the other excludes them."""
        return self._marginals()

    def _expected(self, other: StructuredDistribution, term: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """The expectation under this distribution of a term of both potentials of a part, B; 0 where it is not."""
        shapes = [tuple(x.shape) for x in self.potentials], [tuple(x.shape) for x in other.potentials]
        kin = isinstance(self, type(other)) or isinstance(other, type(self))
        alike = kin and shapes[0] == shapes[1] and torch.equal(self.lengths, other.lengths)
        if not (alike and self._within(other)):
            raise ValueError(
                f"expected two distributions over the same structures, got {type(self).__name__} of {shapes[0]} and "
                f"{type(other).__name__} of {shapes[1]}, other lengths or other options"
            )
        found = self.lengths.new_zeros(self.lengths.shape, dtype=torch.float64)
        for marginal, p, q in zip(self._marginals_beside(other), self._masked(), other._masked(), strict=True):
            never = marginal.detach() == 0
            terms = marginal.double() * term(p.masked_fill(never, 0.0), q.masked_fill(never, 0.0))
            found = found + terms.flatten(1).sum(1)
        return found


def _like(rows: Tensor, x: Tensor) -> Tensor:
    return rows.reshape(*rows.shape, *[1] * (x.dim() - rows.dim()))


def before(lengths: Tensor, size: int, less: int = 0) -> Tensor:
    """B size bool, True at the positions below each row's length, less a number."""
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(1) - less


def spread(name: str, given: Tensor, shape: Sequence[int]) -> Tensor:
    """In a shape that it broadcasts to.  Raises ValueError if it does not."""
    try:
        return given.expand(shape)
    except RuntimeError:
        raise ValueError(f"expected {name} that broadcast to {tuple(shape)}, got {tuple(given.shape)}") from None
