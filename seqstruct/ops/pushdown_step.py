"""The vector pushdown automaton one step at a time, for decoding and for recurrent models.

Without gradients the state holds the table of `pushdown_recurrence` and steps write into it.  With gradients the table
stays with the chain of steps, and the state holds the chain's token; a state that left its chain (its rows were
reordered, it is stepped from a second time, gradients were switched on or off) is replayed from the steps so far, which
every state keeps.  Where a total leaves the range of float64, that row of the batch is read in log space from the same
steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqstruct.ops.pushdown_layout import transition_count
from seqstruct.ops.pushdown_log import pushdown_log
from seqstruct.ops.pushdown_recurrence import (
    Part,
    Recurrence,
    next_column,
    read_column,
    recurrence_of,
    step_weights,
)

CHUNK = 32  # times whose rows are read at once in decoding, as wide as the last of them needs


class PushdownState(NamedTuple):
    """All that runs of `length` steps leave behind.  Tensors may have room for more steps than that.

    table:   B S N Q (1 + m + (N-1) S Q), float64, N > length; N = 0 where the chain of steps has it.
    reading: B (Q S m), float64, after the last step; 0 where out of range.
    token:   B, what links the steps of a chain.
    history: B N-1 A+m, float64, the log-weights and the pushed vectors so far.
    bottom:  B m, the vector of the bottom element.
    scaled:  B bool, whether the row is in range (else it is read in log space).
    length:  B long, the number of steps, the same in each row.  limit: B long, the most steps allowed, or -1.
    """

    table: Tensor
    reading: Tensor
    token: Tensor
    history: Tensor
    bottom: Tensor
    scaled: Tensor
    length: Tensor
    limit: Tensor


def pushdown_initial(
    bottom: Tensor, batch_size: int, *, states: int, symbols: int, max_length: int | None = None
) -> PushdownState:
    """The state before the first step: state 0, symbol 0 with the vector `bottom` (m) on the stack.

    max_length: the most steps that `pushdown_step` will take from here; None for no bound.
    Raises ValueError if a number is below 1.
    """
    count = transition_count(states, symbols)
    if max_length is not None and max_length < 1:
        raise ValueError(f"expected a max_length of 1 or more, got {max_length}")
    length = torch.zeros(batch_size, dtype=torch.long, device=bottom.device)
    return _initial(
        bottom.expand(batch_size, -1),
        torch.full_like(length, -1 if max_length is None else max_length),
        count,
        states,
        symbols,
    )


def _initial(bottom: Tensor, limit: Tensor, count: int, states: int, symbols: int) -> PushdownState:
    """bottom: B m; limit: B long; count: A."""
    B, size = bottom.shape
    table = bottom.new_zeros(B, symbols, 1, states, 1 + size, dtype=torch.float64)
    table[:, 0, 0, 0, 0] = 1.0
    table[:, 0, 0, 0, 1:] = bottom.detach()
    return PushdownState(
        table,
        pad(bottom.double(), (0, (states * symbols - 1) * size)),
        table.new_zeros(B),
        table.new_zeros(B, 0, count + size),
        bottom,
        torch.ones_like(limit, dtype=torch.bool),
        torch.zeros_like(limit),
        limit,
    )


def pushdown_step(state: PushdownState, logits: Tensor, pushed: Tensor, *, states: int, symbols: int) -> PushdownState:
    """The state after one more step; the old one is consumed.

    logits: B A log-weights; pushed: B m.  Without gradients cells beyond `length` are written in place and the
    tables double when they are full; with gradients all steps of the chain stay in memory.  A step without gradients
    cuts off those of the steps before it.
    Raises ValueError if the shapes do not fit or the state's limit is reached.
    Cost: O(B t^2 S^2 Q^3) time at step t, O(B t S^2 Q^2) new memory; t such steps where the state is replayed.
    """
    _check(state, logits, pushed, states, symbols)
    done = _length(state)
    limit = int(state.limit[0]) if state.limit.numel() else -1
    if 0 <= limit <= done:
        raise ValueError(f"the stack has taken {done} steps and was made for at most {limit} (max_length)")
    inputs = state.token, state.reading, state.history, state.bottom, logits, pushed
    if torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
        return _linked_step(state, done, logits, pushed, states, symbols)
    with torch.no_grad():
        return _written_step(state, done, logits, pushed, states, symbols)


def pushdown_reading(state: PushdownState) -> Tensor:
    """Readings after the last step, B (Q S m), in the data type of the bottom vector; zeros where no run is left.

    Before the first step: the bottom vector in state 0 and symbol 0.
    """
    done = _length(state)
    readings = state.reading
    rows = (~state.scaled).nonzero().squeeze(1)
    if rows.numel():
        readings = readings.index_copy(0, rows, _exact(state, rows, done))
    return readings.to(state.bottom.dtype)


def _exact(state: PushdownState, rows: Tensor, done: int) -> Tensor:
    """The last readings of some rows of the batch, in log space."""
    size, symbols, states = state.bottom.size(1), state.table.size(1), state.table.size(3)
    history = state.history.index_select(0, rows)[:, :done]
    logits, pushed = history.split([history.size(2) - size, size], 2)
    bottom = state.bottom.index_select(0, rows).double()
    return pushdown_log(logits, pushed, bottom, states, symbols)[:, -1].flatten(1)


def _length(state: PushdownState) -> int:
    lengths = set(state.length.tolist())
    if len(lengths) > 1:
        raise ValueError(f"expected a pushdown state of one length, got rows of {sorted(lengths)} steps")
    return lengths.pop() if lengths else 0


def _linked_step(
    state: PushdownState, done: int, logits: Tensor, pushed: Tensor, states: int, symbols: int
) -> PushdownState:
    """A step that is linked to the chain the state comes from, or to a new one with all steps so far."""
    token, chain, history = state.token, recurrence_of(state.token, done), state.history[:, :done]
    if chain is None:
        chain = Recurrence(state.bottom, states=states, symbols=symbols)
        token, replayed = chain.start(state.bottom), history[:, :0]
        for earlier in history.unbind(1):
            before = earlier.split([logits.size(1), pushed.size(1)], 1)
            token, _, replayed, _ = chain.step(token, replayed, *before)
    token, reading, history, scaled = chain.step(token, history, logits, pushed)
    return PushdownState(
        history.new_empty(len(history), symbols, 0, states, 0),
        reading,
        token,
        history,
        state.bottom,
        scaled,
        state.length + 1,
        state.limit,
    )


def _written_step(
    state: PushdownState, done: int, logits: Tensor, pushed: Tensor, states: int, symbols: int
) -> PushdownState:
    """A step that is written into the state's own table."""
    if state.table.size(2) <= done:
        history = state.history[:, :done]
        state = _initial(state.bottom.detach(), state.limit, logits.size(1), states, symbols)
        for time, earlier in enumerate(history.unbind(1)):
            before = earlier.split([logits.size(1), pushed.size(1)], 1)
            state = _written_step(state, time, *before, states, symbols)
    size = pushed.size(1)
    table, history = _room(state, done, states * symbols)
    last = table[:, :, done, :, : 1 + size + done * states * symbols].flatten(1, 2)
    vectors = pushed.double()
    totals = torch.where(state.scaled, last[:, :, 0].sum(1), 1.0)
    column, totals, _, scaled = next_column(
        last,
        _parts(table, done, 1 + size),
        step_weights(logits.double(), totals, states, symbols),
        vectors,
        state.scaled,
        symbols,
    )
    table[:, :, done + 1, :, : column.size(2)] = column.unflatten(1, (symbols, states))
    history[:, done, : logits.size(1)] = logits
    history[:, done, logits.size(1) :] = vectors
    return PushdownState(
        table,
        read_column(column, totals, size, symbols),
        state.token.detach(),
        history,
        state.bottom.detach(),
        scaled,
        state.length + 1,
        state.limit,
    )


def _parts(table: Tensor, times: int, narrow: int) -> Iterator[Part]:
    """The rows of times 0 .. times-1, chunk by chunk, each as wide as its last time needs."""
    B, S, _, Q, _ = table.shape
    for first in range(0, times, CHUNK):
        after = min(first + CHUNK, times)
        columns = narrow + (after - 1) * S * Q
        yield first, after, table[:, :, first:after, :, :columns].reshape(B * S, (after - first) * Q, columns)


def _room(state: PushdownState, done: int, top: int) -> tuple[Tensor, Tensor]:
    """The state's table and history, or copies of twice the size if there is no room for one more step."""
    if state.table.size(2) > done + 1:
        return state.table, state.history
    more = max(16, 2 * (done + 1))
    B, S, _, Q, _ = state.table.shape
    narrow = 1 + state.bottom.size(1)
    visible = state.table[:, :, : done + 1, :, : narrow + done * top]
    grown = visible.new_zeros(B, S, more, Q, narrow + (more - 1) * top)
    grown[:, :, : done + 1, :, : visible.size(4)] = visible
    return grown, pad(state.history[:, :done], (0, 0, 0, more - 1 - done))


def _check(state: PushdownState, logits: Tensor, pushed: Tensor, states: int, symbols: int) -> None:
    B, count = state.token.size(0), transition_count(states, symbols)
    if logits.shape != (B, count) or pushed.shape != (B, state.bottom.size(1)):
        raise ValueError(
            f"expected logits {B} {count} and pushed {B} {state.bottom.size(1)}, "
            f"got {tuple(logits.shape)} and {tuple(pushed.shape)}"
        )
