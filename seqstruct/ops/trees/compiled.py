"""Marginals of trees in compiled form, both passes, as in `scaled` (projective), `spanning` and `constituency`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from seqstruct.ops.compiled import Operator
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.marginals import FirstPass
from seqstruct.ops.rows import Rows
from seqstruct.ops.trees.layout import masked_arcs
from seqstruct.ops.trees.matrix_tree import log_shares, matrix_tree


def compiled_projective(arcs: Tensor, lengths: Tensor | None, single_root: bool) -> FirstPass:
    """The first pass, from log potentials B n+1 n+1, whose marginals are differentiable.

    lengths: B long, the words of each row, which come first, or None; what stands behind them does not matter.
    O(B n^3) time and O(B n^2) memory.
    """
    marginals, log_partition, exact, _ = PROJECTIVE.call(arcs, lengths, single_root, _recorded(arcs))
    return FirstPass((marginals,), log_partition, exact, None, None)


def compiled_constituency(spans: Tensor, lengths: Tensor) -> FirstPass:
    """As above, of binary trees from log potentials B n n labels; lengths: B long, the words of each row."""
    marginals, log_partition, exact, _ = CONSTITUENCY.call(spans, lengths, _recorded(spans))
    return FirstPass((marginals,), log_partition, exact, None, None)


def compiled_spanning(arcs: Tensor, lengths: Tensor | None, single_root: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Log-partition B, float64, marginals B n+1 n+1, both twice differentiable, and which rows (B bool) are exact.

    Arguments and cost as above.  What is not exact is 0, with derivatives 0.
    """
    marginals, log_partition, exact, _ = SPANNING.call(arcs, lengths, single_root, _recorded(arcs))
    return log_partition, marginals, exact


def _recorded(potentials: Tensor) -> bool:
    return torch.is_grad_enabled() and potentials.requires_grad


def _fake(kept: Callable[[int], int]) -> Callable[..., tuple[Tensor, ...]]:
    """kept: how many numbers a row keeps for the second pass, by its positions, as the kernel lays them out."""

    def fake(potentials: Tensor, lengths: Tensor | None, *options: bool) -> tuple[Tensor, ...]:
        B, N, recorded = potentials.size(0), potentials.size(1), options[-1]
        row = potentials.new_empty(B, dtype=torch.float64)
        exact, room = row.new_empty(B, dtype=torch.bool), row.new_empty(B if recorded else 0, kept(N))
        return potentials.new_empty(potentials.shape), row, exact, room

    return fake


def _fake_backward(marginals: Tensor, *_: Any) -> Tensor:
    return marginals.new_empty(marginals.shape)


def _setup(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    _, lengths, *ctx.options, _ = inputs
    marginals, log_partition, exact, kept = output
    ctx.save_for_backward(marginals, lengths, exact, kept)
    ctx.mark_non_differentiable(log_partition, exact, kept)
    ctx.set_materialize_grads(False)


def _derivative(along: Operator) -> Callable[..., tuple[Tensor | None, ...]]:
    """along: the derivative of the marginals in a direction."""

    @first_derivatives_only
    def backward(ctx: Any, direction: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        if direction is not None:
            direction = along.call(*ctx.saved_tensors, direction, *ctx.options)
        return direction, None, None, *(None for _ in ctx.options)

    return backward


def _setup_spanning(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    arcs, lengths, ctx.single_root, _ = inputs
    marginals, _, exact, kept = output
    ctx.save_for_backward(arcs, marginals, lengths, exact, kept)
    ctx.mark_non_differentiable(exact, kept)
    ctx.set_materialize_grads(False)


def _backward_spanning(
    ctx: Any, direction: Tensor | None, d_log_partition: Tensor | None, *_: None
) -> tuple[Tensor | None, ...]:
    arcs, marginals, lengths, exact, kept = ctx.saved_tensors
    if torch.is_grad_enabled():
        found = _gradient(arcs, lengths, ctx.single_root, direction, d_log_partition)
        return found, None, None, None
    found = None
    if d_log_partition is not None:
        found = marginals * d_log_partition.to(marginals.dtype).view(-1, 1, 1)
    if direction is not None:
        along = SPANNING_BACKWARD.call(marginals, lengths, exact, kept, direction, ctx.single_root)
        found = along if found is None else found + along
    return found, None, None, None


def _gradient(
    arcs: Tensor, lengths: Tensor | None, single_root: bool, direction: Tensor | None, d_log_partition: Tensor | None
) -> Tensor:
    """Differentiable in its turn."""
    B, N, _ = arcs.shape
    if lengths is None:
        lengths = torch.full((B,), N - 1, device=arcs.device)
    real = torch.arange(N - 1, device=arcs.device) < lengths.unsqueeze(1)
    shares, scale = log_shares(masked_arcs(arcs, Rows(real, None)), single_root)
    log_partition, marginals, _ = matrix_tree(shares, lengths, single_root)
    results = [(marginals.to(arcs.dtype), direction), (log_partition + scale, d_log_partition)]
    values, grads = zip(*(pair for pair in results if pair[1] is not None), strict=True)
    return torch.autograd.grad(values, arcs, grads, create_graph=True)[0]


PROJECTIVE_BACKWARD = Operator("projective_marginals_backward", _fake_backward)
PROJECTIVE = Operator(
    "projective_marginals", _fake(lambda N: 11 * N * (N + 1) // 2 + 1), _setup, _derivative(PROJECTIVE_BACKWARD)
)
CONSTITUENCY_BACKWARD = Operator("constituency_marginals_backward", _fake_backward)
CONSTITUENCY = Operator(
    "constituency_marginals", _fake(lambda n: 3 * n * (n + 1) // 2), _setup, _derivative(CONSTITUENCY_BACKWARD)
)
SPANNING = Operator("spanning_marginals", _fake(lambda N: (N - 1) * (2 * N - 1)), _setup_spanning, _backward_spanning)
SPANNING_BACKWARD = Operator("spanning_marginals_backward", _fake_backward)
