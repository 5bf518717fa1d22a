"""One step of rational recurrences, as Peng (2022) writes them (eq. E.2 to E.5; `automata.rational` has them too)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from seqstruct.ops.automata.rational import MAX_PLUS, PATTERNS, Rational


def rational_step(
    automaton: str,
    projected: Tensor,
    state: Tensor,
    *,
    final_logits: Tensor | None = None,
    epsilon_logits: Tensor | None = None,
) -> Rational:
    """As `rational_recurrence`, of one word: projected B K d, state B J d, the results without the axis T."""
    columns, previous = projected.unbind(1), state.unbind(1)
    if automaton == MAX_PLUS:
        states = [torch.maximum(F.logsigmoid(columns[0]) + previous[0], columns[1])]
    else:
        states = [torch.lerp(columns[1], previous[0], columns[0].sigmoid())]
    if PATTERNS[automaton] == 2:
        so_far = previous[0] if epsilon_logits is None else previous[0] + epsilon_logits.sigmoid()
        states.append(torch.lerp(so_far * columns[3], previous[1], columns[2].sigmoid()))
    scores = _scores(states, final_logits)
    return Rational(_hidden(automaton, scores, columns[2 * len(states) :]), scores, torch.stack(states, 1))


def _scores(states: list[Tensor], final_logits: Tensor | None) -> Tensor:
    if final_logits is None:
        return states[-1]
    first, second = final_logits.sigmoid()
    return first * states[0] + second * states[1]


def _hidden(automaton: str, scores: Tensor, output_logits: tuple[Tensor, ...]) -> Tensor:
    if not output_logits:
        return scores.tanh()
    if automaton == MAX_PLUS:
        return (F.logsigmoid(output_logits[0]) + scores).tanh()
    return (output_logits[0].sigmoid() * scores).tanh()
