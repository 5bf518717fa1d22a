"""The most probable run of the vector pushdown automaton of `pushdown`: Viterbi over the tables of `pushdown.log`.

X, g and their names are those of `pushdown.scaled`, with the greatest weight of a run in place of the sum of weights.
Beside them V_k[s z] is the weight of what may follow from time k in state s with top z when that element is not popped
any more:
    V_T = 1,    V_k = max(push_{k+1} V_{k+1}, replace_{k+1} V_{k+1}, max_{j>=k+2} g[k,j] V_j).
The run is then read off from the first step on, each element of the stack remembering when it will be popped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.pushdown.layout import arrange, check_logits, pad_pushdown_logits
from seqstruct.ops.pushdown.log import log_tables


class Transition(NamedTuple):
    """One step of a run.

    step: which one, from 0, as in the input; padded steps are left out.  action: "push", "replace" or "pop".
    state, symbol: before the step, the automaton's state and the top of the stack.
    next_state, next_symbol: after it; the new top is what was pushed, put in place of the old one, or uncovered.
    height: elements on the stack after the step, 1 for the bottom alone.
    vector: the step that pushed the top's vector, -1 for the bottom vector: a replaced element keeps its vector.
    log_weight: of the transition, as given.
    """

    step: int
    action: str
    state: int
    symbol: int
    next_state: int
    next_symbol: int
    height: int
    vector: int
    log_weight: float


class Run(NamedTuple):
    """A run: its transitions in order, and its log-weight, the sum of theirs.

    log_share: the logarithm of its share of the weight of all runs, 0 at most, in nats.
    Where no run is possible: no transitions, and -inf twice.
    """

    transitions: tuple[Transition, ...]
    log_weight: float
    log_share: float


@torch.no_grad()
def most_probable_run(logits: Tensor, *, states: int, symbols: int, padding_mask: Tensor | None = None) -> list[Run]:
    """The run of greatest weight over all steps, for each row of the batch; it may end in any state with any stack.

    logits: B T A, log-weights as laid out in `pushdown.layout`, any real numbers or -inf, not normalised.
    padding_mask: B T bool, True = padding, or None.
    Of runs of equal weight one is taken: a push before a replacement before a push that is popped again, then the
    smaller state, symbol and step.
    Raises ValueError if the shapes do not fit.
    Cost: O(B S T^3 Q^3) sums in log space, O(B S T^2 Q^2) memory.
    """
    check_logits(logits, states, symbols)
    if padding_mask is not None and padding_mask.shape != logits.shape[:2]:
        raise ValueError(f"expected a padding mask {tuple(logits.shape[:2])}, got {tuple(padding_mask.shape)}")
    B, T, _ = logits.shape
    if B == 0 or T == 0:
        return [Run((), 0.0, 0.0) for _ in range(B)]
    logits = pad_pushdown_logits(logits.detach().double(), padding_mask, states, symbols)
    moves, pops = arrange(logits, states, symbols)
    totals = _onward(moves, log_tables(moves, pops)[1], symbols, torch.logsumexp)[:, 0, 0, 0].tolist()
    popped, around = log_tables(moves, pops, torch.amax)
    onward = _onward(moves, around, symbols, torch.amax)
    by_row = (x.unflatten(0, (B, symbols)).cpu() for x in (popped, around))
    rows = zip(moves.transpose(0, 1).cpu(), pops.transpose(0, 1).cpu(), *by_row, onward.cpu(), strict=True)
    padded = [[False] * T] * B if padding_mask is None else padding_mask.tolist()
    return [_Row(*row).run(total, skip) for row, total, skip in zip(rows, totals, padded, strict=True)]


def _onward(moves: Tensor, around: Tensor, symbols: int, sum_over: Callable[[Tensor, int], Tensor]) -> Tensor:
    """log V of all times, B T+1 S Q; around: BS TQ TQ, log g."""
    T, B, _, top = moves.shape
    states = top // symbols
    onward = moves.new_zeros(B, symbols, T + 1, states)
    for k in range(T - 1, -1, -1):
        after = moves[k] + onward[:, :, k + 1].reshape(B, 1, top)  # B 2SQ SQ
        terms = [after.view(B, 2, symbols, states, top).transpose(1, 3).transpose(1, 2).flatten(3)]  # B S Q 2SQ
        if k + 2 <= T:
            returned = around[:, k * states : (k + 1) * states, (k + 1) * states :].unflatten(0, (B, symbols))
            terms.append(returned + onward[:, :, k + 2 :].flatten(2).unsqueeze(2))
        onward[:, :, k] = sum_over(torch.cat(terms, 3), 3)
    return onward.transpose(1, 2)


class _Row:
    """Tables of one row of the batch: moves T 2SQ SQ, pops T S Q Q, popped and around S TQ TQ, onward T+1 S Q."""

    def __init__(self, moves: Tensor, pops: Tensor, popped: Tensor, around: Tensor, onward: Tensor):
        self.length, self.symbols, self.states, _ = pops.shape
        sizes = (2, self.symbols, self.states, self.symbols, self.states)
        self.push, self.replace = moves.view(self.length, *sizes).unbind(1)  # T S Q S Q: [.., x, q, y, r]
        grid = (self.symbols, self.length, self.states, self.length, self.states)
        self.pops, self.onward = pops, onward
        self.popped, self.around = popped.reshape(grid), around.reshape(grid)  # [y, time, state, step, state after]

    def run(self, total: float, padded: list[bool]) -> Run:
        """The best run; total: log-weight of all runs; padded: of each step, whether it is left out."""
        best = self.onward[0, 0, 0].item()
        if best == -torch.inf:
            return Run((), best, best)
        state, transitions = 0, []
        stack: list[tuple[int, int, tuple[int, int] | None]] = [(0, -1, None)]  # symbol, vector, (step, state) of pop
        for step in range(self.length):
            symbol, vector, fate = stack[-1]
            action, next_state, next_symbol, pushed_fate = self._best(step, state, symbol, fate)
            if action == "pop":
                stack.pop()
                weight = self.pops[step, symbol, state, next_state]
            elif action == "push":
                stack.append((next_symbol, step, pushed_fate))
                weight = self.push[step, symbol, state, next_symbol, next_state]
            else:
                stack[-1] = (next_symbol, vector, fate)
                weight = self.replace[step, symbol, state, next_symbol, next_state]
            if not padded[step]:
                top = stack[-1]
                transitions.append(
                    Transition(step, action, state, symbol, next_state, top[0], len(stack), top[1], weight.item())
                )
            state = next_state
        return Run(tuple(transitions), best, min(0.0, best - total))

    def _best(
        self, step: int, state: int, symbol: int, fate: tuple[int, int] | None
    ) -> tuple[str, int, int, tuple[int, int] | None]:
        """Action, state and symbol after it, and the fate of what is pushed.

        fate: at which step the top is to be popped and the state after that, or None if it is to stay.
        """
        if fate is not None and fate[0] == step:
            return "pop", fate[1], -1, None
        push, replace = self.push[step, symbol, state], self.replace[step, symbol, state]  # S Q
        last = self.length if fate is None else fate[0]  # what is pushed is popped before this step
        returned = self.around[symbol, step, state, step + 1 : last]  # steps Q
        if fate is None:
            after, later = self.onward[step + 1], self.onward[step + 2 :, symbol]
            choices = {"push": push + after, "replace": replace + after, "return": returned + later}
        else:
            after = self.popped[:, step + 1, :, fate[0], fate[1]]
            later = self.popped[symbol, step + 2 : last + 1, :, fate[0], fate[1]]
            choices = {"replace": replace + after, "return": returned + later}
        action = max((name for name in choices if choices[name].numel()), key=lambda name: choices[name].max().item())
        at, to = divmod(int(choices[action].argmax()), self.states)
        if action != "return":
            return action, to, at, None
        popping = step + 1 + at
        at, to_state = divmod(int((push + self.popped[:, step + 1, :, popping, to]).argmax()), self.states)
        return "push", to_state, at, (popping, to)
