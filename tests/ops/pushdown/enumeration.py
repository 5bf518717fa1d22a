"""Every run of the nondeterministic stack over a short sequence, and the readings that runs add up to."""

from __future__ import annotations

import math

import torch


def every_run(logits, Q, S):
    """Of one sequence: the log-weight of each run and, step by step, the fields of a transition from `action` on."""
    T, top = len(logits), Q * S
    tables, found = logits.view(T, top, logits.size(-1) // top).tolist(), []

    def go(state, stack, weight, past):
        t = len(past)
        if t == T:
            found.append((weight, past))
            return
        symbol, vector = stack[-1]
        row = tables[t][state * S + symbol]
        for column, more in enumerate(row):
            kind, target = divmod(column, top)
            to, y = divmod(target, S) if kind < 2 else (target, None)
            if kind == 0:
                after = [*stack, (y, t)]
            elif kind == 1:
                after = [*stack[:-1], (y, vector)]
            else:
                after = stack[:-1]
            if after:
                name = ("push", "replace", "pop")[kind]
                step = (name, state, symbol, to, after[-1][0], len(after), after[-1][1])
                go(to, after, weight + more, (*past, step))

    go(0, [(0, -1)], 0.0, ())
    return found


def readings(logits, pushed, bottom, Q, S, window=math.inf):
    """T (Q S m) of one sequence; a run ends where its top was pushed `window` steps ago or more."""
    vectors, found = torch.cat([pushed, bottom.unsqueeze(0)]), []
    for t in range(1, len(logits) + 1):
        sums, total = torch.zeros(Q, S, len(bottom), dtype=pushed.dtype), 0.0
        for weight, past in every_run(logits[:t], Q, S):
            if all(time - step[-1] < window for time, step in enumerate(past)):
                *_, state, symbol, _, vector = past[-1]
                sums[state, symbol] += math.exp(weight) * vectors[vector]
                total += math.exp(weight)
        found.append(sums.flatten() / total)
    return torch.stack(found)
