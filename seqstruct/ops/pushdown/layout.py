"""How the log-weights of a vector pushdown automaton's transitions lie in a vector.

With Q states and S stack symbols a step has A = Q S (Q S + Q S + Q) log-weights, viewed as [Q S, Q S + Q S + Q]: the
row is (q, x), the state and the top symbol before the step, q slowest; the columns are push (r, y), replace (r, y),
pop r.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LARGEST_EXPONENT = 600.0  # exp of it is in the range of float64 with room for sums and gradients
LARGEST_READING = 2.0**60  # for gates of a recurrent network, which are open or shut long before; squares fit float32


class Transitions(NamedTuple):
    """Weights, or log-weights, of all transitions, symbols slowest.

    moves: T B 2SQ SQ, first the pushes, then the replacements; [.., (x, q), (y, r)].
    pops:  T B S Q Q, [.., x, q, r].
    """

    moves: Tensor
    pops: Tensor


def transition_count(states: int, symbols: int) -> int:
    """A, the number of log-weights of a step.  Raises ValueError unless both are 1 or more."""
    if states < 1 or symbols < 1:
        raise ValueError(f"expected 1 or more states and symbols, got {states} and {symbols}")
    return states * symbols * (2 * states * symbols + states)


def check_logits(logits: Tensor, states: int, symbols: int) -> None:
    """Raises ValueError unless they are B T A."""
    count = transition_count(states, symbols)
    if logits.dim() != 3 or logits.size(2) != count:
        raise ValueError(
            f"expected logits B T {count} for {states} states and {symbols} symbols, got {tuple(logits.shape)}"
        )


def pad_pushdown_logits(logits: Tensor, padding_mask: Tensor | None, states: int, symbols: int) -> Tensor:
    """Replace padded steps by the identity: (q, x) is replaced by itself with weight 1, all else has weight 0.

    logits: B T A log-weights; padding_mask: B T bool, True = padding, or None.  Returns B T A.
    """
    if padding_mask is None:
        return logits
    top = states * symbols
    identity = logits.new_full((top, 2 * top + states), -torch.inf).diagonal_scatter(logits.new_zeros(top), top)
    return torch.where(padding_mask.unsqueeze(-1), identity.flatten(), logits)


def pushed_vectors(inputs: Tensor, padding_mask: Tensor | None = None, *, sigmoid: bool = False) -> Tensor:
    """What inputs of any shape .. m push, float64: exp of them, or their logistic function; zeros at padding.

    padding_mask: .. bool or None.  Inputs above LARGEST_EXPONENT push what that one does, without gradient.
    """
    inputs = inputs.double()
    if padding_mask is not None:
        inputs = inputs.masked_fill(padding_mask.unsqueeze(-1), -torch.inf)
    return inputs.sigmoid() if sigmoid else inputs.clamp(max=LARGEST_EXPONENT).exp()


def arrange(logits: Tensor, states: int, symbols: int) -> Transitions:
    """Take log-weights B T A apart, time first."""
    top = states * symbols
    table = logits.transpose(0, 1).unflatten(-1, (states, symbols, 2 * top + states)).transpose(2, 3)  # T B x q ..
    moves = table[..., : 2 * top].unflatten(-1, (2, states, symbols)).permute(0, 1, 4, 2, 3, 6, 5)  # T B 2 x q y r
    return Transitions(moves.flatten(5).flatten(2, 4).contiguous(), table[..., 2 * top :].contiguous())


def scale(logits: Tensor, states: int, symbols: int) -> Tensor:
    """What to subtract from the log-weights B T A of each step (B T 1) so that every row sums to 1 at most.

    Readings do not change by it, so it carries no gradient.  0 where a step has no transition at all.
    """
    rows = logits.detach().unflatten(-1, (states * symbols, -1)).logsumexp(-1)
    shift = rows.amax(-1, keepdim=True)
    return torch.where(shift == -torch.inf, torch.zeros_like(shift), shift)
