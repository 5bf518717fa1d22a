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

from seqstruct.ops.chains.log import LogChain, chain_total, log_chain, log_chain_tangent
from seqstruct.ops.chains.log_potentials import Rows, level_, refuse_what_is_no_number
from seqstruct.ops.chains.scaled import scaled_chain, scaled_chain_tangent
from seqstruct.ops.chains.tiles import ScanSpace
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.semiring import LogSemiring, MaxSemiring, SamplingSemiring
from seqstruct.ops.workspace import Loan

FIELDS_OF_LOG_CHAIN = len(LogChain._fields)
NO_ROWS = torch.zeros(0, dtype=torch.long)


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
    rows, unary, edge = _aligned(unary, edge, padding_mask)
    return _LogPartition.apply(unary, edge, rows)


def chain_marginals(unary: Tensor, edge: Tensor, padding_mask: Tensor | None = None) -> ChainMarginals:
    """Probabilities of states and of pairs of neighbouring states; differentiable once."""
    rows, unary, edge = _aligned(unary, edge, padding_mask)
    node, pair = _Marginals.apply(unary, edge, rows)
    return ChainMarginals(rows.back(node, 1), rows.back(pair, 1))


def chain_entropy(unary: Tensor, edge: Tensor, padding_mask: Tensor | None = None) -> Tensor:
    """Entropy of the distribution over paths, B, in nats; differentiable once; 0 where no path is possible.

    The sum of the entropies of the first state and of each state given the one before: no term is negative, and large
    potentials cost no digits.
    """
    rows, *potentials = _aligned(unary.double(), edge.double(), padding_mask)
    node, pair = _Marginals.apply(*potentials, rows)
    if node.size(1) == 0:
        return unary.new_zeros(len(unary))
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
    return BestPath(*_structure(unary, edge, padding_mask, MaxSemiring()))


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
    states, _ = _structure(*copies, SamplingSemiring(generator))
    return states.unflatten(0, (count, unary.size(0)))


def chain_potentials(unary: Tensor, edge: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """One vector and N-1 matrices whose product is the sum over paths: start B C and steps B N-1 C C, log space, to
    whose columns are added those of the states that they lead to, entering B N-1 C.

    real: B N bool, no padding in front, or None; a padded step does nothing.
    """
    start, steps, entering = unary[:, 0], edge, unary[:, 1:]
    if real is None:
        return start, steps, entering
    C = unary.size(2)
    nothing = unary.new_full((C, C), -torch.inf).fill_diagonal_(0.0)
    one_of_all = unary.new_full((C,), -torch.inf)
    one_of_all[0] = 0.0
    start, steps = torch.where(real[:, :1], start, one_of_all), torch.where(real[:, 1:, None, None], steps, nothing)
    return start, steps, entering.masked_fill(~real[:, 1:, None], 0.0)


def _aligned(unary: Tensor, edge: Tensor, padding_mask: Tensor | None) -> tuple[Rows, Tensor, Tensor]:
    """Padding moved to the end of each row."""
    fits = unary.dim() == 3 and unary.size(2) > 0
    if not fits or edge.shape != (unary.size(0), max(0, unary.size(1) - 1), *unary.shape[2:] * 2):
        raise ValueError(f"expected unary B N C and edge B N-1 C C, got {tuple(unary.shape)} and {tuple(edge.shape)}")
    if unary.dtype != edge.dtype or not unary.is_floating_point():
        raise ValueError(f"expected unary and edge of one floating type, got {unary.dtype} and {edge.dtype}")
    rows = Rows.of(padding_mask, *unary.shape[:2])
    return rows, rows.to_front(unary, 1), rows.to_front(edge, 1)


def _structure(
    unary: Tensor, edge: Tensor, padding_mask: Tensor | None, semiring: LogSemiring
) -> tuple[Tensor, Tensor]:
    """The path that the gradient of a semiring's total points out, B N, and that total, B."""
    rows, *aligned = _aligned(unary.detach().double(), edge.detach().double(), padding_mask)
    if unary.size(1) == 0:
        return unary.new_zeros(unary.shape[:2], dtype=torch.long), unary.new_zeros(unary.size(0))
    # Both kinds are brought to a maximum of 0 before they meet, lest digits are lost in a great number.
    nodes, steps = (x.clone() for x in _masked(*aligned, rows.real))
    scale = level_(nodes, 2).sum(1) + level_(steps, 2, 3).sum(1)
    with torch.enable_grad():
        total = chain_total(*chain_potentials(nodes.requires_grad_(), steps, rows.real), semiring)
        (indicator,) = torch.autograd.grad(total.sum(), nodes)
    total = total.detach() + scale
    _refuse(total, *aligned, rows)
    states = indicator.argmax(2).masked_fill((total == -torch.inf).unsqueeze(1), -1)
    if rows.real is not None:
        states = states.masked_fill(~rows.real, -1)
    return rows.back(states, 1), total.to(unary.dtype)


def _refuse(log_partition: Tensor, unary: Tensor, edge: Tensor, rows: Rows) -> None:
    """Look for what is no number, in real positions, if a log-partition is not finite."""
    if not bool(log_partition.isfinite().all()):
        unary, edge = _masked(unary, edge, rows.real)
        refuse_what_is_no_number("unary", rows.back(unary, 1))
        refuse_what_is_no_number("edge", rows.back(edge, 1))


class _Pass(NamedTuple):
    """Marginals and log-partition of a batch, float64, and all that the tangent needs, as tensors.

    rows: which rows the scaled form could not do, R long; kept: first what log space keeps of these rows, if there are
    any, then what the scaled form keeps, some of which the loan may hold.
    """

    node: Tensor
    edge: Tensor
    log_partition: Tensor
    rows: Tensor
    kept: tuple[Tensor, ...]
    loan: Loan[ScanSpace] | None


def _infer(unary: Tensor, edge: Tensor, positions: Rows, need_total: bool) -> _Pass:
    real = positions.real
    parts = chain_potentials(unary, edge, real)
    if edge.size(1) == 0:
        chain, node, pair = log_chain(*(x.double() for x in parts))
        log_partition, rows, kept = chain.log_partition, torch.arange(len(unary), device=unary.device), tuple(chain)
        loan = None
    else:
        node, pair, log_partition, exact, kept, loan = scaled_chain(*parts, need_total)
        rows = NO_ROWS if bool(exact.all()) else (~exact).nonzero().squeeze(1)
        if len(rows):
            chain, *marginals = log_chain(*(x[rows].double() for x in parts))
            found, exceptions = (node, pair, log_partition), (*marginals, chain.log_partition)
            node, pair, log_partition = (x.index_copy(0, rows, y) for x, y in zip(found, exceptions, strict=True))
            kept = (*chain, *kept)
    if len(rows):
        _refuse(log_partition, unary, edge, positions)
    return _Pass(*_masked(node, pair, real), log_partition, rows, kept, loan)


def _masked(node: Tensor, edge: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    if real is None:
        return node, edge
    return node.masked_fill(~real.unsqueeze(2), 0.0), edge.masked_fill(~real[:, 1:, None, None], 0.0)


def _tangent(
    rows: Tensor,
    kept: tuple[Tensor, ...],
    loan: Loan[ScanSpace] | None,
    real: Tensor | None,
    node: Tensor | None,
    edge: Tensor,
) -> tuple[Tensor, Tensor]:
    """Derivatives of the marginals in the direction of unary B N C, None for 0, and edge potentials B N-1 C C."""
    if real is not None:
        edge = edge.masked_fill(~real[:, 1:, None, None], 0.0)
        node = None if node is None else node.masked_fill(~real.unsqueeze(2), 0.0)
    parts = (None, edge, None) if node is None else (node[:, 0], edge, node[:, 1:])
    if not len(rows):
        return _masked(*scaled_chain_tangent(kept, loan, *parts), real)
    exceptions = LogChain(*kept[:FIELDS_OF_LOG_CHAIN])
    if node is None:
        node = edge.new_zeros(len(edge), edge.size(1) + 1, edge.size(2))
    d_rows = log_chain_tangent(exceptions, *(x[rows].double() for x in (node[:, 0], edge, node[:, 1:])))
    if len(rows) == len(edge):
        return _masked(*d_rows, real)
    d_node, d_edge = scaled_chain_tangent(kept[FIELDS_OF_LOG_CHAIN:], loan, *parts)
    d_node, d_edge = (x.index_copy(0, rows, y) for x, y in zip((d_node, d_edge), d_rows, strict=True))
    return _masked(d_node, d_edge, real)


class _Marginals(torch.autograd.Function):
    @staticmethod
    def forward(ctx, unary: Tensor, edge: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        if unary.size(1) == 0:
            return torch.zeros_like(unary), torch.zeros_like(edge)
        done = _infer(unary, edge, rows, need_total=False)
        ctx.loan = done.loan
        ctx.save_for_backward(rows.real, done.rows, *done.kept)
        ctx.set_materialize_grads(False)
        return done.node.to(unary.dtype), done.edge.to(unary.dtype)

    @staticmethod
    @first_derivatives_only
    def backward(ctx, node: Tensor | None, edge: Tensor | None) -> tuple[Tensor | None, Tensor | None, None]:
        if not ctx.saved_tensors or (node is None and edge is None):
            return None, None, None
        real, rows, *kept = ctx.saved_tensors
        if edge is None:
            edge = node.new_zeros(len(node), node.size(1) - 1, node.size(2), node.size(2))
        d_node, d_edge = _tangent(rows, tuple(kept), ctx.loan, real, node, edge)
        return d_node.to(edge.dtype), d_edge.to(edge.dtype), None


class _LogPartition(torch.autograd.Function):
    """Its gradient is the marginals, as a function of the potentials where a second derivative is wanted."""

    @staticmethod
    def forward(ctx, unary: Tensor, edge: Tensor, rows: Rows) -> Tensor:
        if unary.size(1) == 0:
            ctx.save_for_backward(unary, edge, unary, edge)
            return unary.new_zeros(unary.size(0))
        done = _infer(unary, edge, rows, need_total=True)
        ctx.rows = rows
        ctx.save_for_backward(unary, edge, done.node.to(unary.dtype), done.edge.to(unary.dtype))
        return done.log_partition.to(unary.dtype)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        unary, edge, *marginals = ctx.saved_tensors
        if unary.size(1) and torch.is_grad_enabled():
            marginals = _Marginals.apply(unary, edge, ctx.rows)
        node, pair = marginals
        return node * grad.view(-1, 1, 1), pair * grad.view(-1, 1, 1, 1), None
