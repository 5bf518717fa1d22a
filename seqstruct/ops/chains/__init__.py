"""Linear-chain conditional random fields (Lafferty et al. 2001) as layers, after Kim et al. (2017, section 3.1).

A path z of the real positions 0 .. L-1 of a row has the score

    sum_{t < L} unary[t, z_t] + sum_{t < L-1} edge[t, z_t, z_{t+1}]

and a probability in proportion to exp(score).  The start and stop potentials of the paper (Figure 2) are added to the
unary potentials of the first and the last real position.

Everywhere: unary B N C and edge B N-1 C C are log potentials, real numbers or -inf (impossible), C >= 1 states, of
one floating type; padding_mask B N, True = padding, before or after the real positions of a row, or None.  What the
padded positions hold does not matter.  A row without real positions has one path, the empty one; where no path is
possible the log-partition is -inf and all marginals are 0.  Calculations are in float64, results in the type of the
potentials.  Raises ValueError if the shapes do not fit, padding stands between real positions, or a potential is NaN
or +inf (looked for only where the log-partition is not finite).

The marginals take O(B N C^2) time and memory (O(B N C^3) time up to 5 states), their backward pass about twice that.
The paper runs its backward pass in a signed logarithm; here it is a derivative along a direction, in ordinary numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.chains.compiled import compiled_chain
from seqstruct.ops.chains.naive import chain_total
from seqstruct.ops.chains.scaled import scaled_chain, scaled_chain_tangent
from seqstruct.ops.compiled import usable
from seqstruct.ops.log_potentials import leveled, refuse_what_is_no_number
from seqstruct.ops.marginals import FirstPass, log_partition, marginals, structure
from seqstruct.ops.opaque import opaque
from seqstruct.ops.rows import Rows
from seqstruct.ops.semiring import LogSemiring, MaxSemiring, SamplingSemiring


class ChainMarginals(NamedTuple):
    """node: B N C, p(z_t = i); edge: B N-1 C C, p(z_t = i, z_{t+1} = j).  Zero at padding."""

    node: Tensor
    edge: Tensor


class BestPath(NamedTuple):
    """states: B N long, -1 at padding and where no path is possible; score: B, log space."""

    states: Tensor
    score: Tensor


def chain_log_partition(unary: Tensor, edge: Tensor, padding_mask: Tensor | None = None) -> Tensor:
    """Logarithm of the sum over all paths of exp(score), B, in nats; twice differentiable."""
    paths, *potentials = _aligned(unary, edge, padding_mask)
    return log_partition(paths, *potentials)


def chain_marginals(unary: Tensor, edge: Tensor, padding_mask: Tensor | None = None) -> ChainMarginals:
    """Probabilities of states and of pairs of neighbouring states; differentiable once."""
    return ChainMarginals(*_marginals(unary, edge, padding_mask))


@opaque(lambda unary, edge, _: (unary.new_empty(unary.shape), edge.new_empty(edge.shape)))
def _marginals(unary: Tensor, edge: Tensor, padding_mask: Tensor | None) -> tuple[Tensor, Tensor]:
    paths, *potentials = _aligned(unary, edge, padding_mask)
    node, pair = marginals(paths, *potentials)
    return paths.back(node, unary.size(1)), paths.back(pair, edge.size(1))


def chain_entropy(unary: Tensor, edge: Tensor, padding_mask: Tensor | None = None) -> Tensor:
    """Entropy of the distribution over paths, B, in nats; differentiable once; 0 where no path is possible.

    The sum of the entropies of the first state and of each state given the one before: no term is negative, and large
    potentials cost no digits.
    """
    paths, *potentials = _aligned(unary, edge, padding_mask)
    node, pair = marginals(paths, *(x.double() for x in potentials))
    # Its derivative by the marginals is the surprisal: what that adds changes no sum over a state's successors.
    first, later = node[:, 0] * _surprisal(node[:, 0]), pair * _surprisal(pair)
    return (first.sum(1) + later.sum((1, 2, 3))).to(unary.dtype)


def _surprisal(weights: Tensor) -> Tensor:
    """-log of each weight's share in the sum over the last axis, to full relative precision; 0 for no weight."""
    weights = weights.detach()
    others = weights @ (1 - torch.eye(weights.size(-1), dtype=weights.dtype, device=weights.device))
    rest = others / (others + weights)
    found = torch.where(rest < 0.5, -torch.log1p(-rest), (others + weights).log() - weights.log())
    return found.masked_fill_(weights == 0, 0.0)


def chain_best_path(unary: Tensor, edge: Tensor, padding_mask: Tensor | None = None) -> BestPath:
    """The path of the greatest score (Viterbi); of several one, without preference.  No gradient."""
    return BestPath(*_path(unary, edge, padding_mask, MaxSemiring()))


def chain_sample(
    unary: Tensor, edge: Tensor, padding_mask: Tensor | None = None, *, count: int, generator: torch.Generator
) -> Tensor:
    """Paths drawn independently from the distribution, count B N long; -1 as in `BestPath`.  No gradient.

    generator: the source of random numbers, on the device of the potentials.
    Raises ValueError unless count is 1 or more.
    """
    if count < 1:
        raise ValueError(f"expected 1 or more samples, got {count}")
    copies = (x if x is None else x.repeat(count, *[1] * (x.dim() - 1)) for x in (unary, edge, padding_mask))
    states, _ = _path(*copies, SamplingSemiring(generator))
    return states.unflatten(0, (count, unary.size(0)))


def chain_total_of(unary: Tensor, edge: Tensor, padding_mask: Tensor | None = None, *, semiring: LogSemiring) -> Tensor:
    """What a semiring says of all paths (`chains.naive`), B, from potentials in float64; differentiable as it is."""
    paths, *potentials = _aligned(unary, edge, padding_mask)
    return paths.total(tuple(potentials), semiring)


class _Paths(NamedTuple):
    """All paths of rows whose padding comes last, if N >= 1: the family of `ops.marginals`."""

    rows: Rows

    def select(self, rows: Tensor) -> _Paths:
        return _Paths(self.rows.select(rows))

    def total(self, potentials: tuple[Tensor, ...], semiring: LogSemiring) -> Tensor:
        """Both kinds are brought to a maximum of 0 before they meet, lest digits are lost in a great number."""
        unary, edge = _idle(*potentials, self.rows.real)
        (unary, of_states), (edge, of_steps) = leveled(unary, semiring, 2), leveled(edge, semiring, 2, 3)
        scale = semiring.lift(of_states.sum(1) + of_steps.sum(1))
        return semiring.value(semiring.times(chain_total(unary, edge, semiring), scale))

    def first_pass(self, potentials: tuple[Tensor, ...], need_total: bool) -> FirstPass:
        """In scaled probability space."""
        if usable(*potentials):
            return compiled_chain(*potentials, self.rows.words())
        real = self.rows.real
        done = scaled_chain(*_idle(*potentials, real), need_total)
        return done if real is None else done._replace(marginals=_masked(*done.marginals, real))

    def second_pass(self, kept, loan, direction: tuple[Tensor | None, ...]) -> tuple[Tensor, ...]:
        """Along a direction, of which padding has none."""
        node, edge = direction
        if edge is None:
            edge = node.new_zeros(len(node), node.size(1) - 1, node.size(2), node.size(2))
        return _masked(*scaled_chain_tangent(kept, loan, *_masked(node, edge, self.rows.real)), self.rows.real)

    def refuse(self, potentials: tuple[Tensor, ...]) -> None:
        """Look at real positions."""
        for name, x in zip(("unary", "edge"), _masked(*potentials, self.rows.real), strict=True):
            refuse_what_is_no_number(name, self.rows.back(x, 1))

    def back(self, x: Tensor, length: int) -> Tensor:
        """B N .. as the caller has its positions, of which there may be none."""
        x = self.rows.back(x, 1)
        return x if x.size(1) == length else x[:, :length]


def _aligned(unary: Tensor, edge: Tensor, padding_mask: Tensor | None) -> tuple[_Paths, Tensor, Tensor]:
    """Padding moved to the end of each row; where there is no position, one that is padded."""
    fits = unary.dim() == 3 and unary.size(2) > 0
    if not fits or edge.shape != (unary.size(0), max(0, unary.size(1) - 1), *unary.shape[2:] * 2):
        raise ValueError(f"expected unary B N C and edge B N-1 C C, got {tuple(unary.shape)} and {tuple(edge.shape)}")
    if unary.dtype != edge.dtype or not unary.is_floating_point():
        raise ValueError(f"expected unary and edge of one floating type, got {unary.dtype} and {edge.dtype}")
    rows = Rows.of(padding_mask, *unary.shape[:2])
    if unary.size(1) == 0:
        unary = torch.nn.functional.pad(unary, (0, 0, 0, 1))
        rows = Rows(unary.new_zeros(unary.shape[:2], dtype=torch.bool), None)
    return _Paths(rows), rows.to_front(unary, 1), rows.to_front(edge, 1)


def _idle(unary: Tensor, edge: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """Potentials under which a padded step does nothing, and a row without real positions has one path."""
    if real is None:
        return unary, edge
    identity = edge.new_full(edge.shape[2:], -torch.inf).fill_diagonal_(0.0)
    unary = unary.masked_fill(~real.unsqueeze(2), 0.0)
    unary[:, 0, 1:].masked_fill_(~real[:, :1], -torch.inf)
    return unary, torch.where(real[:, 1:, None, None], edge, identity)


def _masked(node: Tensor | None, edge: Tensor, real: Tensor | None) -> tuple[Tensor | None, Tensor]:
    """0 at padding."""
    if real is None:
        return node, edge
    node = None if node is None else node.masked_fill(~real.unsqueeze(2), 0.0)
    return node, edge.masked_fill(~real[:, 1:, None, None], 0.0)


def _path(unary: Tensor, edge: Tensor, padding_mask: Tensor | None, semiring: LogSemiring) -> tuple[Tensor, Tensor]:
    """The path that the gradient of a semiring's total points out, B N, and that total, B."""
    paths, *potentials = _aligned(unary, edge, padding_mask)
    indicators, total = structure(paths, semiring, *potentials)
    states = indicators.argmax(2).masked_fill((total == -torch.inf).unsqueeze(1), -1)
    if paths.rows.real is not None:
        states = states.masked_fill(~paths.rows.real, -1)
    return paths.back(states, unary.size(1)), total.to(unary.dtype)
