"""What the vector pushdown automaton of `pushdown` is expected to do at each step, over all its runs so far.

In log space from end to end: what is all but impossible before a step may be what the step makes likely.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.pushdown.layout import arrange, check_logits
from seqstruct.ops.pushdown.log import log_tables


@torch.no_grad()
def expected_actions(logits: Tensor, *, states: int, symbols: int) -> Tensor:
    """Probabilities of push, pop and replace at each step: shares of the weight of the runs that end with that step.

    logits: B T A, log-weights as laid out in `pushdown.layout`, any real numbers or -inf, not normalised.
    Returns B T 3 float64, (push, pop, replace), summing to 1; zeros where no run is left.
    Raises ValueError if the shapes do not fit.
    Cost: O(B S T^3 Q^3) sums in log space, O(B S T^2 Q^2) memory.
    """
    check_logits(logits, states, symbols)
    if logits.numel() == 0:
        return logits.new_zeros(*logits.shape[:2], 3, dtype=torch.float64)
    top = states * symbols
    logits = logits.detach().double()
    every, above = _endings(logits, states, symbols).unsqueeze(4).unbind(2)  # B T QS 1
    push, replace, pop = logits.unflatten(2, (top, -1)).split([top, top, states], 3)
    terms = every + push, above + pop, every + replace
    weights = torch.stack([term.flatten(2).logsumexp(2) for term in terms], 2)  # B T 3
    return weights.softmax(2).masked_fill((weights == -torch.inf).all(2, keepdim=True), 0.0)


def _endings(logits: Tensor, states: int, symbols: int) -> Tensor:
    """B T 2 QS: log-weights of the runs before each step that end in (q, x), and of those whose top is not the bottom.

    The recurrence of F in `pushdown.scaled`; what is above the bottom comes from a push of whatever was there before.
    """
    B, T, _ = logits.shape
    top = states * symbols
    moves, pops = arrange(logits, states, symbols)
    columns = log_tables(moves, pops)[1].unflatten(2, (T, states)).unbind(2)  # BS TQ Q each
    start = logits.new_full((2, B, top), -torch.inf)
    start[0, :, 0] = 0.0
    found = [start]
    for t in range(T - 1):
        push, replace = moves[t].transpose(1, 2).split(top, 2)  # B SQ SQ: [(y, r), (x, q)]
        every = found[t][:1].expand(2, B, top)
        terms = [every.unsqueeze(2) + push, found[t].unsqueeze(2) + replace]
        if t:
            before = torch.stack(found[:t], 2).view(2, B, t, symbols, states).transpose(2, 3).reshape(2, -1, t * states)
            popped = columns[t][:, : t * states].transpose(1, 2) + before.unsqueeze(2)  # 2 BS Q tQ
            terms.append(popped.reshape(2, B, top, t * states))
        found.append(torch.cat(terms, 3).logsumexp(3))
    return torch.stack(found, 2).permute(1, 2, 0, 3).unflatten(3, (symbols, states)).transpose(3, 4).flatten(3)
