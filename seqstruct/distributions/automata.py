"""Distributions over the runs of weighted automata: finite-state ones, and vector pushdown automata."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.distributions.base import Parts, StructuredDistribution, before
from seqstruct.ops.automata import Wfsa
from seqstruct.ops.masking import fails
from seqstruct.ops.pushdown import naive_tops, pad_pushdown_logits, transition_count
from seqstruct.ops.semiring import LogSemiring
from seqstruct.ops.symbols import whole_numbers


class Runs(NamedTuple):
    """start, end: .. Q, the first and the last state; arcs: .. T Q Q, [t, i, j] of the arc from i to j that takes the
    symbol t; epsilons: .. T+1 Q Q, of arcs from i to j that take none, before the symbol t and after the last.
    """

    start: Tensor
    arcs: Tensor
    epsilons: Tensor
    end: Tensor


class WFSA(StructuredDistribution):
    """Runs of a weighted finite-state automaton over a string of T symbols (Peng 2022, section 6.2).

    start, arcs, epsilons and end: log potentials as in `Runs`, the event.  epsilons None: there are none; `order` names
    those that there are, (i, j), those that lead to a state before those that leave it.  lengths: *, symbols of rows;
    a row of none has runs too.  `log_partition` is the score of the string.  O(B T Q^2).
    """

    kinds, ranks, Event = ("start", "arcs", "epsilons", "end"), (1, 3, 3, 1), Runs

    def __init__(
        self,
        start: Tensor,
        arcs: Tensor,
        end: Tensor,
        *,
        epsilons: Tensor | None = None,
        order: tuple[tuple[int, int], ...] = (),
        lengths: Tensor | None = None,
    ) -> None:
        *_, T, _, Q = (0, 0, 0, *arcs.shape)
        if epsilons is None:
            epsilons = arcs.new_full((*arcs.shape[:-3], T + 1, Q, Q), -torch.inf)
        wanted = (start, (Q,)), (arcs, (T, Q, Q)), (end, (Q,)), (epsilons, (T + 1, Q, Q))
        if any(x.shape[-len(shape) :] != shape for x, shape in wanted):
            shapes = [tuple(x.shape) for x in (start, arcs, end, epsilons)]
            raise ValueError(f"expected start * Q, arcs * T Q Q, end * Q and epsilons * T+1 Q Q, got {shapes}")
        for n, (i, j) in enumerate(order):
            if not (0 <= i < Q and 0 <= j < Q) or any(i == target for _, target in order[n:]):
                raise ValueError(f"order: expected pairs of states below {Q}, those into a state first, got {order}")
        if len(set(order)) < len(order):
            raise ValueError(f"order: expected each pair once, got {order}")
        super().__init__(start, arcs, epsilons, end, lengths=lengths)
        self.order = order

    @classmethod
    def of(cls, automaton: Wfsa, symbols: Tensor, *, lengths: Tensor | None = None) -> WFSA:
        """Of one automaton over the log semiring, as `seqstruct.ops.automata.wfsa` makes it, and strings * T long.

        What strings hold beyond their lengths does not matter; raises ValueError on other symbols out of range.
        """
        symbols = whole_numbers("symbols", symbols)
        batch, T, most = symbols.shape[:-1], symbols.size(-1), automaton.arcs.size(-3) - 1
        Q = automaton.initial.size(-1)
        epsilons = automaton.epsilon.expand(*batch, T + 1, Q, Q)
        start, end = (x.expand(*batch, Q) for x in (automaton.initial, automaton.final))
        order = automaton.epsilon_order
        arcs = automaton.arcs[symbols.clamp(0, most)]
        found = cls(start, arcs, end, epsilons=epsilons, order=order, lengths=lengths)
        beyond = found._flat((symbols < 0) | (symbols > most)).to(found.lengths.device)
        if fails(beyond & before(found.lengths, T), f"expected symbols from 0 to {most}"):
            raise ValueError(f"expected symbols from 0 to {most}, got {symbols}")
        return found

    def greatest_length(self) -> int:
        return self.potentials[1].size(1)

    def mask(self) -> Parts:
        start, arcs, epsilons, _ = self.potentials
        everywhere = torch.ones_like(start, dtype=torch.bool)
        named = torch.zeros(epsilons.shape[2:], dtype=torch.bool, device=start.device)
        for i, j in self.order:
            named[i, j] = True
        times = before(self.lengths + 1, epsilons.size(1))[..., None, None]
        return everywhere, before(self.lengths, arcs.size(1))[..., None, None], times & named, everywhere

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        start, arcs, epsilons, end = map(semiring.lift, potentials)
        found = [self._epsilons(start, epsilons[..., 0, :, :], semiring)]
        for step, epsilon in zip(arcs.unbind(-3), epsilons.unbind(-3)[1:], strict=True):
            taken = semiring.sum(semiring.times(found[-1].unsqueeze(-1), step), -2)
            found.append(self._epsilons(taken, epsilon, semiring))
        last = torch.stack(found, -2)[..., self._rows(), self.lengths, :]  # * B Q
        return semiring.value(semiring.sum(semiring.times(last, end), -1))

    def _epsilons(self, states: Tensor, epsilon: Tensor, semiring: LogSemiring) -> Tensor:
        found = list(states.unbind(-1))
        for i, j in self.order:
            found[j] = semiring.add(found[j], semiring.times(found[i], epsilon[..., i, j]))
        return torch.stack(found, -1)


class Pushdown(StructuredDistribution):
    """Runs of the vector pushdown automaton of `seqstruct.ops.pushdown` (DuSell and Chiang 2023, 2024) over T steps.

    logits: * T A, log potentials and event: of each step, which of A transitions it takes (`ops.pushdown.layout` says
    which stands where).  lengths: *, steps of a row.  A run starts with state 0 and the bottom symbol 0 and may end
    anyhow.  O(B S^2 T^3 Q^3), sums by the definition in log space.
    """

    kinds = ("logits",)

    def __init__(self, logits: Tensor, *, states: int, symbols: int, lengths: Tensor | None = None) -> None:
        if logits.dim() < 2 or logits.size(-1) != transition_count(states, symbols):
            count, given = transition_count(states, symbols), tuple(logits.shape)
            raise ValueError(f"expected logits * T {count} for {states} states and {symbols} symbols, got {given}")
        super().__init__(logits, lengths=lengths)
        self.states, self.symbols = states, symbols

    def mask(self) -> Parts:
        return (before(self.lengths, self.greatest_length()).unsqueeze(2),)

    def _within(self, other: Pushdown) -> bool:
        return (self.states, self.symbols) == (other.states, other.symbols)

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        padded = ~before(self.lengths, self.greatest_length())
        logits = pad_pushdown_logits(potentials[0], padded, self.states, self.symbols)
        tops = naive_tops(logits, semiring, states=self.states, symbols=self.symbols)[-1]
        return semiring.value(semiring.sum(tops.flatten(-2), -1))
