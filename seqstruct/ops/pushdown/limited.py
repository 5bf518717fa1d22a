"""The vector pushdown automaton with limited memory, for texts without an end (DuSell and Chiang 2022).

Of the recurrence of `naive` only what was pushed in the last D steps is kept: a run whose top element is older, the
bottom among them, is dropped, and goes on no more.  Up to D steps it is the same as without a limit; the state is
O(D^2) from then on, where that of `step` grows with t^2.

Ages count from 0: element a was pushed in the last step but a.  Weights of runs are scaled by what all of them have
after each step, which changes no reading and keeps them in range for ever: from where they pushed to where they are
no weight is above 1 over the share of the former.  What underflows beside the rest is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqstruct.ops.opaque import opaque
from seqstruct.ops.pushdown.layout import scale, transition_count

SMALLEST = 1e-290  # share of a configuration that counts: 1 over it is in the range of float64 with room for sums


class LimitedState(NamedTuple):
    """Tensors in float64, of h elements, h the least of D and of all that were pushed, the bottom among them.

    inner:   B h h N N, [a, b]: runs that pushed element a, from (q x), and had it on top in (r y) b steps ago, b <= a.
    before:  B h N, the share of runs before element a was pushed, by the configuration (q x) they were in.
    vectors: B h m, the elements.
    """

    inner: Tensor
    before: Tensor
    vectors: Tensor


def limited_initial(bottom: Tensor, batch_size: int, *, states: int, symbols: int) -> LimitedState:
    """The bottom alone, of the vector `bottom` (m), in state 0 and symbol 0."""
    start = bottom.new_zeros(batch_size, 1, states * symbols, dtype=torch.float64)
    start[..., 0] = 1.0
    inner = start[:, :, None, :, None] * start[:, :, None, None]
    return LimitedState(inner, start, bottom.double().expand(batch_size, 1, -1))


def limited_reading(state: LimitedState) -> Tensor:
    """B (Q S m): by state and symbol, the top vectors of runs that end there, by their share; zeros with none left."""
    tops = _tops(state)
    shares = tops / _positive(tops.sum((1, 2), keepdim=True))
    return (shares.transpose(1, 2) @ state.vectors).flatten(1)


def limited_step(
    state: LimitedState, logits: Tensor, pushed: Tensor, *, states: int, symbols: int, window: int
) -> LimitedState:
    """The state after one more step.  Differentiable; gradients are numbers where no configuration with a share below
    1e-150 of all runs comes to be the likeliest later.

    logits: B A log-weights, laid out as in `layout`; pushed: B m; window: D, 1 or more.
    Raises ValueError if the shapes do not fit.  O(B D^2 S^2 Q^3) time, O(B D^2 S^2 Q^2) memory.
    """
    top, count = states * symbols, transition_count(states, symbols)
    if logits.shape != (len(state.vectors), count) or pushed.shape != state.vectors[:, 0].shape:
        raise ValueError(
            f"expected logits {len(state.vectors)} {count} and pushed {tuple(state.vectors[:, 0].shape)}, "
            f"got {tuple(logits.shape)} and {tuple(pushed.shape)}"
        )
    after = _tops(state).sum(1, keepdim=True)  # B 1 N
    gone = after.detach().transpose(1, 2) < SMALLEST  # their weights may be the largest, and scale all others to 0
    logits = logits.double().view(len(logits), top, count // top).masked_fill(gone, -torch.inf)
    weights = (logits - scale(logits.flatten(1).unsqueeze(1), states, symbols)).exp()
    push, replace, pop = weights.split([top, top, states], -1)  # B N .., from (q x)
    newest = state.inner[:, :, 0]  # B h N N, where the runs are
    grown = newest @ replace.unsqueeze(1)
    # an element of age b - 1 is popped, and uncovers one of age a >= b, which was the top b steps ago
    popped = (newest[:, :-1] @ pop.unsqueeze(1)).unflatten(2, (states, symbols))  # B h-1 u y r
    covered = state.inner[:, 1:, 1:].unflatten(4, (states, symbols))  # B h-1 h-1 N u y
    grown = torch.cat([grown[:, :1], grown[:, 1:] + torch.einsum("zabnuy,zbuyr->zanry", covered, popped).flatten(3)], 1)
    column = torch.cat([push.unsqueeze(1), grown], 1)[:, :window]
    before = torch.cat([after, state.before], 1)[:, :window]
    total = (before.detach().unsqueeze(2) @ column.detach()).sum((1, 2, 3))
    column = (column / _positive(total)[:, None, None, None]).unsqueeze(2)  # B h 1 N N
    inner = torch.cat([column, pad(state.inner, (0, 0, 0, 0, 0, 0, 1, 0))[:, :window]], 2)
    vectors = torch.cat([pushed.double().unsqueeze(1), state.vectors], 1)
    return LimitedState(inner[:, :, :window], before, vectors[:, :window])


def limited_steps(
    state: LimitedState,
    logits: Tensor,
    pushed: Tensor,
    padding_mask: Tensor | None = None,
    *,
    states: int,
    symbols: int,
    window: int,
) -> tuple[Tensor, LimitedState]:
    """Readings B T (Q S m) after each of T steps, and the state after all; a padded step changes nothing.

    logits: B T A; pushed: B T m; padding_mask: B T bool, True = padding, or None.
    """
    *state, readings = _limited_steps(*state, logits, pushed, padding_mask, states, symbols, window)
    return readings, LimitedState(*state)


def _fake_steps(
    inner: Tensor, before: Tensor, vectors: Tensor, logits: Tensor, pushed: Tensor, mask: object, *sizes: int
) -> tuple[Tensor, ...]:
    (batch, steps), held = pushed.shape[:2], torch.sym_min(sizes[2], before.size(1) + pushed.size(1))
    held = before.size(1) if not steps else held
    tables = [inner.new_empty(batch, held, held, *inner.shape[3:])]
    tables += [x.new_empty(batch, held, x.size(2)) for x in (before, vectors)]
    return *tables, vectors.new_empty(batch, steps, sizes[0] * sizes[1] * vectors.size(2))


@opaque(_fake_steps)
def _limited_steps(
    inner: Tensor, before: Tensor, vectors: Tensor, logits: Tensor, pushed: Tensor, padding_mask: Tensor | None,
    states: int, symbols: int, window: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    state, readings = LimitedState(inner, before, vectors), []
    for t, step in enumerate(zip(logits.unbind(1), pushed.unbind(1), strict=True)):
        after = limited_step(state, *step, states=states, symbols=symbols, window=window)
        if padding_mask is not None:
            after = _where(padding_mask[:, t], state, after)
        state = after
        readings.append(limited_reading(state))
    return *state, torch.stack(readings, 1) if readings else limited_reading(state).unsqueeze(1)[:, :0]


def _tops(state: LimitedState) -> Tensor:
    """Weights of all runs, B h N: by the element that is on top and the configuration that they are in."""
    return (state.before.unsqueeze(2) @ state.inner[:, :, 0]).squeeze(2)


def _positive(total: Tensor) -> Tensor:
    """The total, or 1 where nothing is left."""
    return total.masked_fill(total < SMALLEST, 1.0)


def _where(same: Tensor, state: LimitedState, after: LimitedState) -> LimitedState:
    """The state in rows where `same` (B bool), with elements of weight 0 up to the number of the other's."""
    more = after.vectors.size(1) - state.vectors.size(1)
    kept = LimitedState(pad(state.inner, (0, 0, 0, 0, 0, more, 0, more)), *(pad(x, (0, 0, 0, more)) for x in state[1:]))
    return LimitedState(
        *(torch.where(same.view(-1, *[1] * (x.dim() - 1)), x, y) for x, y in zip(kept, after, strict=True))
    )
