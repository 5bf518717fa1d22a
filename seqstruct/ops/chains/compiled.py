"""Marginals of linear chains in compiled form: what `scaled` computes, both passes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqstruct.ops.compiled import Operator
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.marginals import FirstPass


def compiled_chain(unary: Tensor, edge: Tensor, lengths: Tensor | None) -> FirstPass:
    """The first pass, from log potentials unary B N C and edge B N-1 C C, whose marginals are differentiable.

    lengths: B long, the real positions of each row, which come first, or None; what stands behind them does not matter.
    O(B N C^2) time, and as much memory with the backward pass.
    """
    recorded = torch.is_grad_enabled() and (unary.requires_grad or edge.requires_grad)
    node, step, log_partition, exact, _ = MARGINALS.call(unary, edge, lengths, recorded)
    return FirstPass((node, step), log_partition, exact, None, None)


def _kept(positions: int, states: int) -> int:
    """Numbers that a row keeps for the second pass, as the kernel lays them out."""
    steps = max(positions - 1, 0)
    return steps * (states * states + 3) + 2 * positions * states + PAD


def _fake(unary: Tensor, edge: Tensor, lengths: Tensor | None, recorded: bool) -> tuple[Tensor, ...]:
    B, N, C = unary.shape
    kept = unary.new_empty(B if recorded else 0, _kept(N, C), dtype=torch.float64)
    row = unary.new_empty(B, dtype=torch.float64)
    return unary.new_empty(unary.shape), edge.new_empty(edge.shape), row, row.new_empty(B, dtype=torch.bool), kept


def _setup(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    unary, edge, lengths, _ = inputs
    *_, log_partition, exact, kept = output
    ctx.save_for_backward(unary, edge, lengths, exact, kept)
    ctx.mark_non_differentiable(log_partition, exact, kept)
    ctx.set_materialize_grads(False)


@first_derivatives_only
def _backward(ctx: Any, d_node: Tensor | None, d_edge: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
    return *MARGINALS_BACKWARD.call(*ctx.saved_tensors, d_node, d_edge), None, None


def _fake_backward(unary: Tensor, edge: Tensor, *_: Tensor | None) -> tuple[Tensor, Tensor]:
    return unary.new_empty(unary.shape), edge.new_empty(edge.shape)


PAD = 16  # as in the source
MARGINALS = Operator("chain_marginals", _fake, _setup, _backward)
MARGINALS_BACKWARD = Operator("chain_marginals_backward", _fake_backward)
