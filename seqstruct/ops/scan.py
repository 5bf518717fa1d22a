"""Elementwise recurrences of first order over time.

    gated      c_t = f_t c_{t-1} + (1 - f_t) z_t,  f_t the sigmoid of a logit      (Peng 2022, eq. 6.5)
    linear     c_t = a_t c_{t-1} + u_t
    max-plus   c_t = max(a_t + c_{t-1}, u_t)                                        (eq. 6.21c)

`gated_scan` has a backward pass of its own; `scan_` runs all three in place, for passes written by hand.  Everywhere:
tensors of the steps are B T d, the state before the first step is B d, the result is the states after each step, B T d,
and empty for T = 0.  Nothing is divided, so that gates of exactly 0 and 1 are exact.

Cost: O(B T d) time and memory.  Steps follow one another; where a step is small and there are many, chunks of CHUNK
steps run side by side from state zero, and the state carried in enters by the product of the decays since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only

CHUNK = 64  # steps of a chunk
LONG = 4 * CHUNK  # chunks pay their second pass over memory from this many steps on,
SMALL = 2**10  # if a step has no more elements than this: larger ones are bound by memory, not by their number


def gated_scan(gate_logits: Tensor, candidates: Tensor, initial: Tensor | None = None) -> Tensor:
    """States c_t = f_t c_{t-1} + (1 - f_t) z_t, in the type of the candidates, calculated in float32 at least.

    gate_logits: of f, +inf for 1, -inf for 0; candidates: z, finite; initial: c_0, None for 0.  First derivatives only.
    Raises ValueError if the shapes do not fit.
    """
    B, d = candidates.size(0), candidates.size(-1)
    if candidates.dim() != 3 or gate_logits.shape != candidates.shape:
        raise ValueError(
            f"expected two tensors B T d of one shape, got {tuple(gate_logits.shape)} and {tuple(candidates.shape)}"
        )
    if initial is None:
        initial = candidates.new_zeros(B, d)
    if initial.shape != (B, d):
        raise ValueError(f"expected an initial state {B} x {d}, got {' x '.join(map(str, initial.shape))}")
    dtype = torch.promote_types(torch.promote_types(gate_logits.dtype, candidates.dtype), torch.float32)
    found = _GatedScan.apply(gate_logits.to(dtype), candidates.to(dtype), initial.to(dtype))
    return found.to(candidates.dtype)


def before(states: Tensor, initial: Tensor) -> Tensor:
    """The state that each step starts from, B T d, of the states after each step and the one before the first."""
    return torch.cat([initial.unsqueeze(1), states[:, :-1]], 1)[:, : states.size(1)]


def last(states: Tensor, initial: Tensor) -> Tensor:
    """The state after the last step, B d; the initial one if there is no step."""
    return states[:, -1] if states.size(1) else initial


class _GatedScan(torch.autograd.Function):
    """With q_t = f_t dc_t, the gradient of a logit is q_t (c_{t-1} - c_t): neither 1 - f nor z is kept."""

    @staticmethod
    def forward(ctx, gate_logits: Tensor, candidates: Tensor, initial: Tensor) -> Tensor:
        gates = gate_logits.sigmoid()
        states = scan_(torch.addcmul(candidates, gates, candidates, value=-1), gates, initial)
        ctx.save_for_backward(gates, states, initial)
        return states

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gates, states, initial = ctx.saved_tensors
        into = grad.clone(memory_format=torch.contiguous_format)
        if into.size(1) > 1:
            scan_(into[:, :-1], gates[:, 1:], into[:, -1], reverse=True)
        kept = gates * into
        start = kept[:, 0] if kept.size(1) else torch.zeros_like(initial)
        return before(states, initial).sub_(states).mul_(kept), into.sub_(kept), start


def plus_times(state: Tensor, decay: Tensor, previous: Tensor) -> None:
    """state += decay * previous, in place."""
    state.addcmul_(decay, previous)


def max_plus(state: Tensor, decay: Tensor, previous: Tensor) -> None:
    """state = max(state, decay + previous), in place."""
    torch.maximum(state, decay + previous, out=state)


def scan_(
    states: Tensor,
    decay: Tensor,
    carry: Tensor,
    step: Callable[[Tensor, Tensor, Tensor], None] = plus_times,
    times: Callable[[Tensor, Tensor], Tensor] = torch.mul,
    reverse: bool = False,
) -> Tensor:
    """Turn the updates `states` B T d into the states, in place: of each step with the one before, in time or reverse.

    carry: B d, the state before the first step; step(state, decay, previous) adds one to the other, in place; times
    joins the decays of two steps.  Not differentiable.
    """
    T = states.size(1)
    chunks = T // CHUNK if T >= LONG and states.size(0) * states.size(2) <= SMALL else 0
    even, rest = (slice(T - CHUNK * chunks, T), slice(0, T - CHUNK * chunks)) if reverse else (
        slice(0, CHUNK * chunks), slice(CHUNK * chunks, T))
    if chunks:
        carry = _chunks_(states[:, even], decay[:, even], carry, step, times, reverse)
    _steps_(states[:, rest].unbind(1), decay[:, rest].unbind(1), carry, step, reverse)
    return states


def _steps_(
    states: Sequence[Tensor], decays: Sequence[Tensor], carry: Tensor | None,
    step: Callable[[Tensor, Tensor, Tensor], None], reverse: bool,
) -> None:
    """One step after the other; without a state carried in, the first one is left as it is."""
    for t in reversed(range(len(states))) if reverse else range(len(states)):
        if carry is not None:
            step(states[t], decays[t], carry)
        carry = states[t]


def _chunks_(
    states: Tensor, decay: Tensor, carry: Tensor, step: Callable[[Tensor, Tensor, Tensor], None],
    times: Callable[[Tensor, Tensor], Tensor], reverse: bool,
) -> Tensor:
    """All chunks side by side, then what is carried from chunk to chunk; returns the state after the last."""
    states, decay = states.unflatten(1, (-1, CHUNK)), decay.unflatten(1, (-1, CHUNK))  # B N CHUNK d
    _steps_(states.unbind(2), decay.unbind(2), None, step, reverse)
    since = decay.clone()  # from the start of the chunk
    products = since.unbind(2)
    order = range(CHUNK - 2, -1, -1) if reverse else range(1, CHUNK)
    for t in order:
        products[t].copy_(times(products[t], products[t + 1 if reverse else t - 1]))
    ends = list(zip(states.unbind(1), since.unbind(1), strict=True))
    for state, product in reversed(ends) if reverse else ends:
        step(state, product, carry.unsqueeze(1))
        carry = state[:, 0 if reverse else -1]
    return carry
