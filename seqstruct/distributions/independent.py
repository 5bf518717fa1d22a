"""Attention's two trivial structures: one key, or any set of keys."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.distributions.base import Parts, StructuredDistribution, before
from seqstruct.ops.semiring import LogSemiring, shares


class _Keys(StructuredDistribution):
    """Of S keys that have a logit each."""

    kinds, ranks = ("logits",), (1,)

    def __init__(self, logits: Tensor, *, lengths: Tensor | None = None) -> None:
        super().__init__(logits, lengths=lengths)

    def mask(self) -> Parts:
        return (before(self.lengths, self.greatest_length()),)


class Categorical(_Keys):
    """One of S keys: softmax attention (Kim et al. 2017, section 2).

    logits: * S; lengths: *, 0 to S; the event is one-hot, * S.  With no key there is no structure.  O(B S).
    """

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        zero = semiring.zero((len(self.lengths), 1), potentials[0])
        return semiring.value(semiring.sum(torch.cat([semiring.lift(potentials[0]), zero], -1), -1))

    def _marginals(self) -> Parts:
        (logits,) = self._masked()
        if logits.size(1) == 0:
            return (logits,)
        total, found = shares(logits, 1)
        self._checked(total)
        return (found,)


class Bernoulli(_Keys):
    """Any set of S keys, each in it or not, independently: sigmoid attention (Kim et al. 2017, section 3.1).

    logits: * S, of being in the set, against 0; lengths: *, 0 to S; the event is 0 or 1 for each key, * S.  O(B S).
    """

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        keys = semiring.lift(potentials[0])
        one = semiring.one(potentials[0].shape, potentials[0])
        factors = semiring.add(keys, one)
        while factors.size(-1) > 1:
            even, odd = factors[..., : factors.size(-1) // 2 * 2].unflatten(-1, (-1, 2)).unbind(-1)
            factors = torch.cat([semiring.times(even, odd), factors[..., factors.size(-1) // 2 * 2 :]], -1)
        return semiring.value(factors[..., 0] if factors.size(-1) else semiring.one(self.lengths.shape, potentials[0]))

    def _marginals(self) -> Parts:
        return (self._checked(self._masked()[0].sigmoid()),)
