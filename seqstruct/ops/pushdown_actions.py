"""What the vector pushdown automaton of `pushdown` is expected to do at each step, over all its runs so far."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.pushdown import pushdown_stack, transition_count


@torch.no_grad()
def expected_actions(logits: Tensor, *, states: int, symbols: int) -> Tensor:
    """Probabilities of push, pop and replace at each step: shares of the weight of the runs that end with that step.

    logits: B T A, log-weights as laid out in `pushdown_layout`, any real numbers or -inf, not normalised.
    Returns B T 3 float64, (push, pop, replace), summing to 1; zeros where no run is left.
    The states and tops before a step come from the readings of two vectors that tell the bottom element, which is
    never popped, from those above it.  Raises ValueError if the shapes do not fit.  Cost: that of `pushdown_stack`.
    """
    count = transition_count(states, symbols)
    if logits.dim() != 3 or logits.size(2) != count:
        raise ValueError(
            f"expected logits B T {count} for {states} states and {symbols} symbols, got {tuple(logits.shape)}"
        )
    B, T, _ = logits.shape
    top = states * symbols
    logits = logits.detach().double()
    pushed, bottom = logits.new_ones(B, T, 2), logits.new_tensor([1.0, 0.0])
    before = logits.new_zeros(B, T, top, 2)  # shares of runs in (q, x), and of those whose top is not the bottom
    if T:
        before[:, 0, 0, 0] = 1.0
        readings = pushdown_stack(logits, pushed, bottom, states=states, symbols=symbols)
        before[:, 1:] = readings[:, :-1].unflatten(2, (top, 2))
    every, above = before.log().unsqueeze(3).unbind(4)  # B T QS 1
    steps = logits.unflatten(2, (top, -1))  # B T QS 2QS+Q
    push, replace, pop = steps.split([top, top, states], 3)
    terms = every + push, above + pop, every + replace
    weights = torch.stack([term.flatten(2).logsumexp(2) for term in terms], 2)  # B T 3
    return weights.softmax(2).masked_fill((weights == -torch.inf).all(2, keepdim=True), 0.0)
