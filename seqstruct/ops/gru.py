"""Gated recurrent units (Cho et al. 2014, sec. 2.3): one step, and a whole sequence in one pass each way.

Gates stand in the order of torch: reset, update, candidate.  With r, z and n after their nonlinearities the state is
z h + (1 - z) n and n = tanh(x_n + r h_n): the reset gate is applied after the recurrent product, as in the decoder of
the source (appendix A.1.2) and in torch; the source's encoder applies it before.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def gru_step(input_gates: Tensor, hidden_gates: Tensor, hidden: Tensor) -> Tensor:
    """Hidden state B h after one step.

    input_gates, hidden_gates: B 3h, what input and state before the step add to the gates; hidden: B h, before the
    step.  First derivatives only.  Raises ValueError if the shapes do not fit.
    """
    gates = hidden.size(0), 3 * hidden.size(-1)
    if hidden.dim() != 2 or input_gates.shape != gates or hidden_gates.shape != gates:
        shapes = tuple(input_gates.shape), tuple(hidden_gates.shape), tuple(hidden.shape)
        raise ValueError("expected gates B 3h, gates B 3h and a state B h, got {}, {} and {}".format(*shapes))
    return _GRUStep.apply(input_gates, hidden_gates, hidden)


def gru_sequence(input_gates: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Hidden states B T h after each of T steps.

    input_gates: B T 3h; hidden: B h, before the first step; weight: 3h h, from the state to the gates; bias: 3h, added
    to what the state gives.  First derivatives only; the weight's gradient is one product.
    Raises ValueError if the shapes do not fit.
    """
    size = hidden.size(-1)
    fits = input_gates.dim() == 3 and input_gates.shape[::2] == (len(hidden), 3 * size)
    if not fits or weight.shape != (3 * size, size) or bias.shape != (3 * size,):
        shapes = [tuple(x.shape) for x in (input_gates, hidden, weight, bias)]
        raise ValueError("expected gates B T 3h, B h, weight 3h h and bias 3h, got {}, {}, {}, {}".format(*shapes))
    return _GRUSequence.apply(input_gates, hidden, weight, bias)


def _advance(input_gates: Tensor, hidden_gates: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The state after the step, reset and update gates side by side, and the candidate."""
    size = hidden.size(1)
    gates = (input_gates[:, : 2 * size] + hidden_gates[:, : 2 * size]).sigmoid_()
    candidate = torch.addcmul(input_gates[:, 2 * size :], gates[:, :size], hidden_gates[:, 2 * size :]).tanh_()
    return torch.lerp(candidate, hidden, gates[:, size:]), gates, candidate


def _retreat(
    grad: Tensor, gates: Tensor, candidate: Tensor, recurrent: Tensor, hidden: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the gates, B 3h, as the input sees them and as the state's side of the candidate sees them, B h.

    recurrent: B h, the state's side of the candidate; hidden: the state before the step.
    """
    reset, update = gates.chunk(2, 1)
    of_candidate = grad * (1 - update) * (1 - candidate.square())
    of_gates = torch.cat([of_candidate * recurrent, grad * (hidden - candidate)], 1) * (gates * (1 - gates))
    return torch.cat([of_gates, of_candidate], 1), of_candidate * reset


class _GRUStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_gates: Tensor, hidden_gates: Tensor, hidden: Tensor) -> Tensor:
        after, gates, candidate = _advance(input_gates, hidden_gates, hidden)
        ctx.save_for_backward(gates, candidate, hidden_gates, hidden)
        return after

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        gates, candidate, hidden_gates, hidden = ctx.saved_tensors
        size = hidden.size(1)
        of_input, of_candidate = _retreat(grad, gates, candidate, hidden_gates[:, 2 * size :], hidden)
        of_hidden = torch.cat([of_input[:, : 2 * size], of_candidate], 1)
        return of_input, of_hidden, grad * gates[:, size:]


class _GRUSequence(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_gates: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        steps, size, transposed = input_gates.unbind(1), hidden.size(1), weight.t()
        states = hidden.new_empty(len(steps) + 1, *hidden.shape)  # T+1 B h
        states[0] = hidden
        kept = []
        for t, step in enumerate(steps):
            hidden_gates = torch.addmm(bias, states[t], transposed)
            states[t + 1], gates, candidate = _advance(step, hidden_gates, states[t])
            kept += [gates, candidate, hidden_gates[:, 2 * size :]]
        ctx.save_for_backward(states, weight, *kept)
        return states[1:].transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        states, weight, *kept = ctx.saved_tensors
        length, size = len(states) - 1, states.size(2)
        of_inputs = grad.new_empty(length, states.size(1), 3 * size)
        of_states = torch.empty_like(of_inputs)
        carried = torch.zeros_like(states[0])
        for t in range(length - 1, -1, -1):
            gates, candidate, recurrent = kept[3 * t : 3 * t + 3]
            carried = carried + grad[:, t]
            of_inputs[t], of_candidate = _retreat(carried, gates, candidate, recurrent, states[t])
            of_states[t, :, : 2 * size] = of_inputs[t, :, : 2 * size]
            of_states[t, :, 2 * size :] = of_candidate
            carried = torch.addmm(carried * gates[:, size:], of_states[t], weight)
        flat = of_states.flatten(0, 1)
        return of_inputs.transpose(0, 1), carried, flat.t() @ states[:-1].flatten(0, 1), flat.sum(0)
