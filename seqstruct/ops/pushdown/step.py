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

from seqstruct.ops.compiled import usable
from seqstruct.ops.pushdown.compiled import compiled_step
from seqstruct.ops.pushdown.layout import transition_count
from seqstruct.ops.pushdown.log import pushdown_log
from seqstruct.ops.pushdown.recurrence import (
    LARGEST_INNER,
    SMALLEST_TOTAL,
    Part,
    Recurrence,
    next_column,
    read_column,
    recurrence_of,
    step_weights,
)

CHUNK = 32  # times whose rows lie together in decoding


class PushdownState(NamedTuple):
    """All that runs of `length` steps leave behind.  Tensors may have room for more steps than that.

    table:   B S L, float64, the columns of times 0 .. `length` as `pushdown_recurrence` has them, Q (1 + m + k S Q) for
             time k and each symbol: CHUNK times after one another, each as wide as the last of them needs.  L = 0 where
             the chain of steps has it.
    total:   B, float64, of the last column.
    reading: B (Q S m), float64, after the last step; 0 where out of range.
    token:   B, what links the steps of a chain.
    history: B N A+m, float64, N >= length, the log-weights and the pushed vectors so far.
    bottom:  B m, the vector of the bottom element.
    scaled:  B bool, whether the row is in range (else it is read in log space).
    length:  B long, the number of steps, the same in each row.  limit: B long, the most steps allowed, or -1.
    """

    table: Tensor
    total: Tensor
    reading: Tensor
    token: Tensor
    history: Tensor
    bottom: Tensor
    scaled: Tensor
    length: Tensor
    limit: Tensor


class _Layout(NamedTuple):
    """Where the columns lie in a row of the table; for each time Q rows of `narrow` + time * SQ numbers."""

    states: int
    symbols: int
    narrow: int

    def width(self, time: int) -> int:
        return self.narrow + time * self.states * self.symbols

    def room(self, chunks: int) -> int:
        """L of so many chunks."""
        columns = chunks * self.narrow + self.states * self.symbols * (CHUNK * chunks * (chunks + 1) // 2 - chunks)
        return CHUNK * self.states * columns

    def chunk(self, table: Tensor, place: int) -> Tensor:
        """BS (CHUNK Q) columns."""
        first, width = self.room(place), self.width((place + 1) * CHUNK - 1)
        return table.flatten(0, 1).narrow(1, first, self.room(place + 1) - first).unflatten(1, (-1, width))

    def column(self, table: Tensor, time: int) -> Tensor:
        """BS Q columns, of one time."""
        place, at = divmod(time, CHUNK)
        return self.chunk(table, place).narrow(1, at * self.states, self.states).narrow(2, 0, self.width(time))

    def parts(self, table: Tensor, times: int) -> Iterator[Part]:
        """The rows of times 0 .. times-1, chunk by chunk, each as wide as its last time needs."""
        for place in range(-(-times // CHUNK)):
            first, after, part = place * CHUNK, min((place + 1) * CHUNK, times), self.chunk(table, place)
            if after - first < CHUNK:
                part = part.narrow(1, 0, (after - first) * self.states).narrow(2, 0, self.width(after - 1))
            yield first, after, part

    def opened(self, table: Tensor, time: int, limit: int) -> Tensor:
        """The table with room for a time, copied to one for a quarter more times where it has none."""
        place, at = divmod(time, CHUNK)
        if self.room(place + 1) > table.size(2):
            chunks = place + 1 + place // 4
            chunks = chunks if limit < 0 else min(chunks, limit // CHUNK + 1)
            grown = table.new_empty(*table.shape[:2], self.room(chunks))
            grown[:, :, : table.size(2)] = table
            table = grown
        if at == 0:
            self.chunk(table, place)[:, :, self.width(time) :].zero_()  # narrower times of the chunk end before
        return table


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
    layout = _Layout(states, symbols, 1 + size)
    start = bottom.new_zeros(B, symbols, states, 1 + size, dtype=torch.float64)
    start[:, 0, 0, 0] = 1.0
    start[:, 0, 0, 1:] = bottom.detach()
    table = layout.opened(start.new_empty(B, symbols, 0), 0, limit=-1)
    layout.column(table, 0).copy_(start.flatten(0, 1))
    return PushdownState(
        table,
        start.new_ones(B),
        pad(bottom.double(), (0, (states * symbols - 1) * size)),
        start.new_zeros(B),
        start.new_zeros(B, 0, count + size),
        bottom,
        torch.ones_like(limit, dtype=torch.bool),
        torch.zeros_like(limit),
        limit,
    )


def pushdown_step(state: PushdownState, logits: Tensor, pushed: Tensor, *, states: int, symbols: int) -> PushdownState:
    """The state after one more step; the old one is consumed.

    logits: B A log-weights; pushed: B m.  Without gradients cells beyond `length` are written in place and the
    tables grow when they are full; with gradients all steps of the chain stay in memory.  A step without gradients
    cuts off those of the steps before it.
    Raises ValueError if the shapes do not fit or the state's limit is reached.
    Cost: O(B t^2 S^2 Q^3) time at step t, O(B t S^2 Q^2) new memory; t such steps where the state is replayed.
    Stored after t steps: about 8 B S^2 Q^2 t^2 / 2 bytes, and room for a quarter more steps.
    """
    _check(state, logits, pushed, states, symbols)
    done, limit = _length(state), _limit(state)
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
    readings = state.reading
    if not bool(state.scaled.all()):
        rows = (~state.scaled).nonzero().squeeze(1)
        readings = readings.index_copy(0, rows, _exact(state, rows, _length(state)))
    return readings.to(state.bottom.dtype)


def _exact(state: PushdownState, rows: Tensor, done: int) -> Tensor:
    """The last readings of some rows of the batch, in log space."""
    size = state.bottom.size(1)
    history = state.history.index_select(0, rows)[:, :done]
    logits, pushed = history.split([history.size(2) - size, size], 2)
    top = state.reading.size(1) // size
    states = logits.size(2) // top - 2 * top
    bottom = state.bottom.index_select(0, rows).double()
    return pushdown_log(logits, pushed, bottom, states, top // states)[:, -1].flatten(1)


def _length(state: PushdownState) -> int:
    lengths = set(state.length.tolist())
    if len(lengths) > 1:
        raise ValueError(f"expected a pushdown state of one length, got rows of {sorted(lengths)} steps")
    return lengths.pop() if lengths else 0


def _limit(state: PushdownState) -> int:
    return int(state.limit[0]) if state.limit.numel() else -1


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
        history.new_empty(len(history), symbols, 0),
        chain.totals,
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
    if state.table.size(2) == 0:
        history = state.history[:, :done]
        state = _initial(state.bottom.detach(), state.limit, logits.size(1), states, symbols)
        for time, earlier in enumerate(history.unbind(1)):
            before = earlier.split([logits.size(1), pushed.size(1)], 1)
            state = _written_step(state, time, *before, states, symbols)
    B, size = pushed.shape
    layout = _Layout(states, symbols, 1 + size)
    table = layout.opened(state.table, done + 1, _limit(state))
    history = state.history
    if history.size(1) == done:
        history = pad(history, (0, 0, 0, max(CHUNK, done)))
    torch.cat([logits, pushed], 1, out=history.select(1, done))
    inputs = history.select(1, done)
    if usable(table, history):
        limits = SMALLEST_TOTAL, LARGEST_INNER
        totals, reading, scaled = compiled_step(
            table, inputs, state.total, state.scaled, limits, done, states, symbols
        )
    else:
        weights, vectors = inputs.split([logits.size(1), size], 1)
        column, totals, _, scaled = next_column(
            layout.column(table, done).unflatten(0, (B, symbols)).flatten(1, 2),
            layout.parts(table, done),
            step_weights(weights, state.total, states, symbols),
            vectors,
            state.scaled,
            symbols,
        )
        layout.column(table, done + 1).copy_(column.unflatten(1, (symbols, states)).flatten(0, 1))
        reading = read_column(column, totals, size, symbols)
    return PushdownState(
        table,
        totals,
        reading,
        state.token.detach(),
        history,
        state.bottom.detach(),
        scaled,
        state.length + 1,
        state.limit,
    )


def _check(state: PushdownState, logits: Tensor, pushed: Tensor, states: int, symbols: int) -> None:
    B, count = state.token.size(0), transition_count(states, symbols)
    if logits.shape != (B, count) or pushed.shape != (B, state.bottom.size(1)):
        raise ValueError(
            f"expected logits {B} {count} and pushed {B} {state.bottom.size(1)}, "
            f"got {tuple(logits.shape)} and {tuple(pushed.shape)}"
        )
