"""Sums over all runs of a vector pushdown automaton in compiled form."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.compiled import call
from seqstruct.ops.first_derivatives import first_derivatives_only


class CompiledRuns(torch.autograd.Function):
    """As `ScaledRuns`, of which it takes the arguments.

    O(B S T^2 Q^2) memory for the backward pass, which adds O(S T^2 Q^2) for each thread.  Threads share the batch rows.
    """

    @staticmethod
    def forward(ctx, moves: Tensor, pops: Tensor, pushed: Tensor, bottom: Tensor) -> Tensor:
        T, B, S, Q, _ = pops.shape
        inputs = moves, pops, pushed, bottom = tuple(x.contiguous() for x in (moves, pops, pushed, bottom))
        sizes = B, T, S, Q, pushed.size(2)
        count = pops.new_empty(1)
        call("pushdown_size", *sizes[:4], count)
        popped, around = (pops.new_empty(int(count)) for _ in range(2))
        ending = pops.new_empty(B, S, T + 1, Q, 1 + pushed.size(2))
        call("pushdown_forward", *sizes, *inputs, popped, around, ending)
        ctx.sizes = sizes
        ctx.save_for_backward(*inputs[:3], popped, around, ending)
        return ending

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor):
        moves, pops, pushed, *_ = ctx.saved_tensors
        gradients = *map(torch.empty_like, (moves, pops, pushed)), pushed.new_empty(pushed.shape[1:])
        call("pushdown_backward", *ctx.sizes, *ctx.saved_tensors, grad.contiguous(), *gradients)
        return gradients
