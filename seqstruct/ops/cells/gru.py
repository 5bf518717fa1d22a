"""Gated recurrent units (Cho et al. 2014, sec. 2.3): one step, and a whole sequence in one pass each way.

Gates stand in the order of torch: reset, update, candidate.  With r, z and n after their nonlinearities the state is
z h + (1 - z) n and n = tanh(x_n + r h_n): the reset gate is applied after the recurrent product, as in the decoder of
the source (appendix A.1.2) and in torch; the source's encoder applies it before.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from seqstruct.ops.deferred import Gathering, Tape
from seqstruct.ops.first_derivatives import first_derivatives_only


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


class GRUSteps:
    """T steps of a GRU, one after another, whose inputs are known in part beforehand.

    input_gates: B T 3h, what that part adds to the gates; of_rest: e 3h, from the rest of the input; weight: 3h h and
    bias: 3h, from the state to the gates.  Computed in the widest of their types.  Backward, what follows from values
    of the forward pass is computed for all steps at once, and gradients of weights are one product each.  First
    derivatives only.  Raises ValueError if the shapes do not fit.
    """

    def __init__(self, input_gates: Tensor, of_rest: Tensor, weight: Tensor, bias: Tensor):
        leaves, width = (input_gates, of_rest, weight, bias), bias.numel()
        fits = input_gates.dim() == 3 and input_gates.size(2) == of_rest.size(-1) == width == 3 * weight.size(-1)
        if not fits or weight.shape != (width, width // 3) or of_rest.dim() != 2:
            shapes = [tuple(x.shape) for x in leaves]
            raise ValueError("expected gates B T 3h, e 3h, weight 3h h and bias 3h, got {}, {}, {}, {}".format(*shapes))
        dtype = functools.reduce(torch.promote_types, (x.dtype for x in leaves))
        self.tape = _Tape(*(x.detach().to(dtype) for x in leaves))
        self.token = Gathering.apply(self.tape, *leaves) if torch.is_grad_enabled() else None

    def __call__(self, t: int, rest: Tensor, hidden: Tensor) -> Tensor:
        """Hidden state B h after step t, from rest B e and the state before it; t = 0, 1, ... in order.

        Raises ValueError out of order.
        """
        tape = self.tape
        if t != tape.made:
            raise ValueError(f"expected step {tape.made}, got step {t}")
        tape.made += 1
        with torch.autocast(rest.device.type, enabled=False):
            if self.token is not None:
                return _TapedStep.apply(self.token, rest, hidden, tape, t)
            return tape.step(t, rest, hidden)


def _advance(input_gates: Tensor, hidden_gates: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The state after the step, reset and update gates side by side, and the candidate."""
    size = hidden.size(1)
    gates = (input_gates[:, : 2 * size] + hidden_gates[:, : 2 * size]).sigmoid_()
    candidate = torch.addcmul(input_gates[:, 2 * size :], gates[:, :size], hidden_gates[:, 2 * size :]).tanh_()
    return torch.lerp(candidate, hidden, gates[:, size:]), gates, candidate


def _slopes(gates: Tensor, candidate: Tensor, recurrent: Tensor, hidden: Tensor) -> Tensor:
    """What the gradient of a step's result is multiplied by to give those of gates, for any number of steps: ... 4 h.

    In the order: the candidate as the state's side sees it, reset, update, the candidate as the input sees it.
    gates: ... 2h; recurrent: ... h, the state's side of the candidate; hidden: ... h, before the step.
    """
    reset, update = gates.chunk(2, -1)
    of_reset, of_update = (gates * (1 - gates)).chunk(2, -1)
    of_candidate = (1 - update) * (1 - candidate.square())
    parts = of_candidate * reset, of_candidate * recurrent * of_reset, (hidden - candidate) * of_update, of_candidate
    return torch.stack(parts, -2)


class _GRUStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_gates: Tensor, hidden_gates: Tensor, hidden: Tensor) -> Tensor:
        after, gates, candidate = _advance(input_gates, hidden_gates, hidden)
        ctx.save_for_backward(gates, candidate, hidden_gates, hidden)
        return after

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor):
        gates, candidate, hidden_gates, hidden = ctx.saved_tensors
        size = hidden.size(1)
        slopes = _slopes(gates, candidate, hidden_gates[:, 2 * size :], hidden)
        of_hidden, of_gates, of_input = (grad.unsqueeze(1) * slopes).split([1, 2, 1], 1)
        of_gates = of_gates.flatten(1)
        return (
            torch.cat([of_gates, of_input.flatten(1)], 1),
            torch.cat([of_gates, of_hidden.flatten(1)], 1),
            grad * gates[:, size:],
        )


class _Tape(Tape):
    """Values of the forward pass, time first, and gradients of gates in the order of `_slopes`."""

    def __init__(self, input_gates: Tensor, of_rest: Tensor, weight: Tensor, bias: Tensor):
        self.input_gates, self.of_rest, self.weight, self.bias = input_gates, of_rest, weight, bias
        self.made = 0
        (B, T, _), size = input_gates.shape, weight.size(1)
        sizes = {"rest": len(of_rest), "states": size, "gates": 2 * size, "candidates": size, "recurrents": size}
        self.kept = {name: weight.new_empty(T, B, n) for name, n in sizes.items()}

    def step(self, t: int, rest: Tensor, hidden: Tensor) -> Tensor:
        """The state after step t."""
        kept, size = {name: x[t] for name, x in self.kept.items()}, hidden.size(1)
        kept["states"].copy_(hidden)
        input_gates = self.input_gates[:, t]
        if rest.size(1):
            input_gates = torch.addmm(input_gates, kept["rest"].copy_(rest), self.of_rest)
        hidden_gates = torch.addmm(self.bias, kept["states"], self.weight.t())
        after, gates, candidate = _advance(input_gates, hidden_gates, kept["states"])
        kept["gates"].copy_(gates)
        kept["candidates"].copy_(candidate)
        kept["recurrents"].copy_(hidden_gates[:, 2 * size :])
        return after

    def begin(self) -> None:
        """Make ready for the backward pass of all steps that were made."""
        kept, size = {name: x[: self.made] for name, x in self.kept.items()}, self.weight.size(1)
        self.slopes = _slopes(kept["gates"], kept["candidates"], kept["recurrents"], kept["states"])
        self.grads = self.slopes.new_zeros(self.input_gates.size(1), len(self.input_gates), 4 * size)
        self.back = self.weight.roll(size, 0)  # candidate, reset, update, as gradients stand

    def step_back(self, t: int, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of the rest of step t's input and of the state before it, from that of the state after it."""
        self.enter()
        written, size = self.grads[t], grad.size(1)
        torch.mul(grad.unsqueeze(1), self.slopes[t], out=written.view(len(grad), 4, size))
        before = torch.addmm(grad * self.kept["gates"][t, :, size:], written[:, : 3 * size], self.back)
        return torch.mm(written[:, size:], self.of_rest.t()), before

    def gradients(self) -> tuple[Tensor, ...]:
        """Of input_gates, of_rest, weight and bias."""
        size, made = self.weight.size(1), slice(self.made)
        of_states, of_inputs = (x.flatten(0, 1) for x in (self.grads[made, :, : 3 * size], self.grads[made, :, size:]))
        rest, states = (self.kept[name][made].flatten(0, 1) for name in ("rest", "states"))
        return (
            self.grads[..., size:].transpose(0, 1),
            rest.t() @ of_inputs,
            (of_states.t() @ states).roll(-size, 0),
            of_states.sum(0).roll(-size),
        )


class _TapedStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, token: Tensor, rest: Tensor, hidden: Tensor, tape: _Tape, t: int) -> Tensor:
        ctx.save_for_backward(token)
        ctx.tape, ctx.t = tape, t
        return tape.step(t, rest, hidden)

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor):
        return *ctx.saved_tensors, *ctx.tape.step_back(ctx.t, grad), None, None


class _GRUSequence(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_gates: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.tape = tape = _Tape(input_gates.detach(), bias.new_empty(0, len(bias)), weight.detach(), bias.detach())
        states = [hidden]
        for tape.made in range(1, input_gates.size(1) + 1):
            states.append(tape.step(tape.made - 1, hidden[:, :0], states[-1]))
        return torch.stack(states, 1)[:, 1:]

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor):
        tape, carried = ctx.tape, grad.new_zeros(len(grad), grad.size(2))
        tape.enter()
        for t in range(grad.size(1) - 1, -1, -1):
            _, carried = tape.step_back(t, carried + grad[:, t])
        of_inputs, _, of_weight, of_bias = tape.gradients()
        return of_inputs, carried, of_weight, of_bias
