"""Distributions over sequences of states: linear chains, hidden Markov models, and chains of segments."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from seqstruct.distributions.base import Parts, StructuredDistribution, before
from seqstruct.ops.chains import chain_entropy, chain_log_partition, chain_marginals, chain_total_of
from seqstruct.ops.masking import fails
from seqstruct.ops.semiring import LogSemiring
from seqstruct.ops.symbols import whole_numbers


class Chain(NamedTuple):
    """node: .. N C, the state at a position; edge: .. N-1 C C, [t, i, j] of the states i at t and j at t + 1."""

    node: Tensor
    edge: Tensor


class LinearChain(StructuredDistribution):
    """Paths through C states at N positions (Lafferty et al. 2001): the linear-chain conditional random field.

    node: * N C and edge: * N-1 C C, log potentials, as in `Chain`, the event; lengths: *, 0 to N.
    O(B N C^2) for all but k-best paths, by `seqstruct.ops.chains`.
    """

    kinds, ranks, Event = ("node", "edge"), (2, 3), Chain

    def __init__(self, node: Tensor, edge: Tensor, *, lengths: Tensor | None = None) -> None:
        if node.dim() < 2 or edge.dim() < 3 or edge.shape[-3:] != (max(0, node.size(-2) - 1), *node.shape[-1:] * 2):
            raise ValueError(f"expected node * N C and edge * N-1 C C, got {tuple(node.shape)} and {tuple(edge.shape)}")
        super().__init__(node, edge, lengths=lengths)

    @staticmethod
    def event(states: Tensor, count: int) -> Chain:
        """The parts of paths .. N long through `count` states; a state of -1, as at padding, has none."""
        node = one_hot(states + 1, count + 1)[..., 1:]
        return Chain(node, node[..., :-1, :, None] * node[..., 1:, None, :])

    def mask(self) -> Parts:
        N = self.greatest_length()
        return before(self.lengths, N).unsqueeze(2), before(self.lengths, max(0, N - 1), 1)[..., None, None]

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        return chain_total_of(*potentials, self._padding(), semiring=semiring)

    def _log_partition(self) -> Tensor:
        return chain_log_partition(*self.potentials, self._padding())

    def _marginals(self) -> Parts:
        return chain_marginals(*self.potentials, self._padding())

    def _entropy(self) -> Tensor:
        return chain_entropy(*self.potentials, self._padding())


class HiddenMarkov(LinearChain):
    """State sequences of a hidden Markov model (Rabiner 1989), given what was observed: a chain of log-probabilities.

    initial: C, of the first state; transition: C C, [i, j] of j after i; emission: C V, [i, v] of v in state i; each in
    logarithms, normalised or not.  observations: * N long, 0 to V-1, on any device.  `log_partition` is the
    log-likelihood of the observations; events are those of `LinearChain`.
    """

    def __init__(
        self,
        initial: Tensor,
        transition: Tensor,
        emission: Tensor,
        observations: Tensor,
        *,
        lengths: Tensor | None = None,
    ) -> None:
        C = initial.numel()
        if initial.shape != (C,) or transition.shape != (C, C) or emission.dim() != 2 or emission.size(0) != C:
            shapes = [tuple(x.shape) for x in (initial, transition, emission)]
            raise ValueError(f"expected initial C, transition C C and emission C V, got {shapes}")
        if emission.size(1) == 0:
            raise ValueError(f"expected emission C V of one symbol or more, got {tuple(emission.shape)}")
        most, observations = emission.size(1) - 1, whole_numbers("observations", observations).to(emission.device)
        node = emission.t()[observations.clamp(0, most)]
        if observations.size(-1):
            node = node + pad(initial.unsqueeze(0), (0, 0, 0, observations.size(-1) - 1))
        steps = max(0, observations.size(-1) - 1)
        super().__init__(node, transition.expand(*observations.shape[:-1], steps, C, C), lengths=lengths)
        beyond = self._flat((observations < 0) | (observations > most))
        if fails(beyond & before(self.lengths, beyond.size(1)), f"expected observations from 0 to {most}"):
            raise ValueError(f"expected observations from 0 to {most}, got {observations}")


class SemiMarkov(StructuredDistribution):
    """Sequences of labelled segments of 1 to K positions (Sarawagi and Cohen 2004): the semi-Markov random field.

    segments: * N K C C, log potentials and event, [t, k, i, j] of the segment of positions t .. t + k with the label j
    after one with the label i; of the first segment, that nothing is before, i is 0.  lengths: *, 0 to N.
    O(B N K C^2), one position after the other.
    """

    kinds, ranks = ("segments",), (4,)

    def __init__(self, segments: Tensor, *, lengths: Tensor | None = None) -> None:
        if segments.dim() < 4 or segments.size(-1) != segments.size(-2) or 0 in segments.shape[-3:]:
            raise ValueError(f"expected segments * N K C C, got {tuple(segments.shape)}")
        super().__init__(segments, lengths=lengths)

    def mask(self) -> Parts:
        _, N, K, C, _ = self.potentials[0].shape
        position = torch.arange(max(N, K, C), device=self.lengths.device)
        within = position[:N, None] + position[:K] < self.lengths[:, None, None]  # B N K
        follows = (position[:N, None] > 0) | (position[:C] == 0)  # N C
        return (within[..., None, None] & follows[:, None, :, None],)

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        B, N, K, C, _ = potentials[0].shape
        segments = semiring.lift(potentials[0]).transpose(-3, -4).flatten(-2)  # * B K N CC
        beyond = semiring.zero((B, K, K, C * C), potentials[0])
        slanted = torch.cat([segments, beyond], -2).flatten(-3, -2)[..., : K * (N + K - 1), :]
        ending = slanted.unflatten(-2, (K, N + K - 1)).unflatten(-1, (C, C))  # * B K N+K-1 C C, by the last position
        zero = semiring.zero((B, C), potentials[0])
        start = torch.cat([semiring.one((B, 1), potentials[0]), zero[..., 1:]], -1)
        before_each = [zero] * (K - 1) + [start]  # * B C
        for step in ending.unbind(-3)[:N]:
            last = torch.stack(before_each[: -K - 1 : -1], -2)  # * B K C, the latest first
            terms = semiring.times(last.unsqueeze(-1), step).flatten(-3, -2)
            before_each.append(semiring.sum(terms, -2))
        every = torch.stack(before_each[K - 1 :], -2)  # * B N+1 C
        return semiring.value(semiring.sum(every[..., self._rows(), self.lengths, :], -1))
