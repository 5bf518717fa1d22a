"""Forward and backward passes over whole sequences behind `rational.rational_recurrence`, with few passes over memory.

One buffer B T K d keeps gates and states in the places of the logits and inputs that they come from, another one takes
the gradients; scans run in their columns.  First derivatives only.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.scan import before, last, max_plus, scan_


class RealPasses(torch.autograd.Function):
    """projected B T K d, state B J d, epsilon d or None, final 2 d or None -> hidden, scores B T d, state B J d.

    epsilon and final are weights, not logits.  The scores of B and C are a view of what is kept for the backward pass.
    """

    @staticmethod
    def forward(ctx, projected: Tensor, state: Tensor, epsilon: Tensor | None, final: Tensor | None):
        J, kept = state.size(1), torch.empty_like(projected)
        columns, inputs = kept.unbind(2), projected.unbind(2)[1 : 2 * J : 2]
        torch.sigmoid(projected[:, :, ::2], out=kept[:, :, ::2])
        second = inputs[1].clone() if J == 2 else None
        for j in range(J):
            gates, states = columns[2 * j], columns[2 * j + 1]
            new = inputs[0] if j == 0 else _so_far(columns[1], state[:, 0], epsilon).mul_(second)
            states.copy_(new).addcmul_(gates, new, value=-1)  # a trace would lose what out= writes into a view
            scan_(states, gates, state[:, j])
        scores = columns[2 * J - 1]
        if final is not None:
            scores = (columns[1] * final[0]).addcmul_(columns[3], final[1])
        hidden = (scores * columns[-1]).tanh_() if len(columns) % 2 else scores.tanh()
        ctx.save_for_backward(kept, state, epsilon, final, second, scores, hidden)
        ctx.set_materialize_grads(False)
        return hidden, scores, _ends(columns, state)

    @staticmethod
    @first_derivatives_only
    def backward(ctx, d_hidden: Tensor | None, d_scores: Tensor | None, d_ends: Tensor | None):
        kept, state, epsilon, final, second, scores, hidden = ctx.saved_tensors
        grad, columns, J = torch.empty_like(kept), kept.unbind(2), state.size(1)
        into, start = grad.unbind(2), torch.zeros_like(state)
        d_c = _before_tanh(d_hidden, hidden)
        if len(columns) % 2:
            output = torch.mul(d_c, scores, out=into[-1]).mul_(columns[-1])
            output.addcmul_(output, columns[-1], value=-1)
            d_c.mul_(columns[-1])
        if d_scores is not None:
            d_c += d_scores
        d_epsilon = d_final = None
        if final is not None:
            d_final = torch.stack([(d_c * columns[j]).sum((0, 1)) for j in (1, 3)])
            for j in (0, 1):
                torch.mul(d_c, final[j], out=into[2 * j + 1])
        else:
            into[1].zero_()
            into[2 * J - 1].copy_(d_c)
        for j in reversed(range(J)):
            gates, states, d_gate, d_state = columns[2 * j], columns[2 * j + 1], into[2 * j], into[2 * j + 1]
            _through_time(d_state, gates, None if d_ends is None else d_ends[:, j])
            torch.mul(gates, d_state, out=d_gate)
            start[:, j] += _first(d_gate, d_ends, j)
            d_state.sub_(d_gate)
            d_gate.mul_(before(states, state[:, j]).sub_(states))
            if j == 1:
                d_so_far = d_state * second
                d_state.mul_(_so_far(columns[1], state[:, 0], epsilon))
                into[1][:, :-1] += d_so_far[:, 1:]
                start[:, 0] += d_so_far[:, :1].sum(1)
                d_epsilon = None if epsilon is None else d_so_far.sum((0, 1))
        return grad, start, d_epsilon, d_final


class MaxPlusPasses(torch.autograd.Function):
    """projected B T K d, state B 1 d -> hidden, scores B T d, state B 1 d; the scores as of `RealPasses`."""

    @staticmethod
    def forward(ctx, projected: Tensor, state: Tensor):
        kept = torch.empty_like(projected)
        columns, score = kept.unbind(2), projected[:, :, 1]
        for column in range(0, len(columns), 2):
            columns[column].copy_(F.logsigmoid(projected[:, :, column]))
        states = columns[1].copy_(score)
        scan_(states, columns[0], state[:, 0], max_plus, torch.add)
        carried = states > score
        hidden = (states + columns[2]).tanh_() if len(columns) == 3 else states.tanh()
        ctx.save_for_backward(kept, carried, hidden)
        ctx.set_materialize_grads(False)
        return hidden, states, _ends(columns, state)

    @staticmethod
    @first_derivatives_only
    def backward(ctx, d_hidden: Tensor | None, d_scores: Tensor | None, d_ends: Tensor | None):
        kept, carried, hidden = ctx.saved_tensors
        grad, columns = torch.empty_like(kept), kept.unbind(2)
        into = grad.unbind(2)
        d_state = into[1].copy_(_before_tanh(d_hidden, hidden))
        if len(columns) == 3:
            torch.expm1(columns[2], out=into[2]).neg_().mul_(d_state)
        if d_scores is not None:
            d_state += d_scores
        carried = carried.to(kept.dtype)
        _through_time(d_state, carried, None if d_ends is None else d_ends[:, 0])
        carried.mul_(d_state)
        start = _first(carried, d_ends, 0).unsqueeze(1)
        d_state.sub_(carried)
        torch.expm1(columns[0], out=into[0]).neg_().mul_(carried)
        return grad, start


def _so_far(states: Tensor, initial: Tensor, epsilon: Tensor | None) -> Tensor:
    """What the second pattern goes on from at each step, B T d, a new tensor."""
    found = before(states, initial)
    return found if epsilon is None else found.add_(epsilon)


def _ends(columns: tuple[Tensor, ...], state: Tensor) -> Tensor:
    return torch.stack([last(columns[2 * j + 1], state[:, j]) for j in range(state.size(1))], 1)


def _before_tanh(d_hidden: Tensor | None, hidden: Tensor) -> Tensor:
    """The gradient of what the hidden state is the hyperbolic tangent of, a new tensor."""
    if d_hidden is None:
        return torch.zeros_like(hidden)
    square = hidden.square()
    return torch.addcmul(d_hidden, d_hidden, square, value=-1, out=square)


def _through_time(d_state: Tensor, decay: Tensor, d_end: Tensor | None) -> None:
    """Add to the gradient of each state, in place, what comes through the states after it."""
    if d_end is not None and d_state.size(1):
        d_state[:, -1] += d_end
    if d_state.size(1) > 1:
        scan_(d_state[:, :-1], decay[:, 1:], d_state[:, -1], reverse=True)


def _first(carried: Tensor, d_ends: Tensor | None, pattern: int) -> Tensor:
    """The gradient of a state before the first step, B d; without steps that state is the last one too."""
    if carried.size(1):
        return carried[:, 0]
    return carried.new_zeros(carried.size(0), carried.size(2)) if d_ends is None else d_ends[:, pattern]
