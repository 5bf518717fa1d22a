"""The vector pushdown automaton one step at a time, for decoding and for recurrent models.

Steps without gradients write into the state's table.  Steps that are recorded only lengthen the history that every
state keeps, and a reading is then the last one of the whole history (`pushdown.stack`), as is that of a row whose
weights have left the range of float64.  A state that goes from recorded steps to others is taken through its history
once.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqstruct.ops.opaque import opaque
from seqstruct.ops.pushdown.columns import Columns
from seqstruct.ops.pushdown.layout import transition_count
from seqstruct.ops.pushdown.log import pushdown_log
from seqstruct.ops.pushdown.stack import pushdown_stack
from seqstruct.ops.pushdown.walk import CHUNK, first_table, write_step


class PushdownState(NamedTuple):
    """All that runs of `length` steps leave behind.  Tensors may have room for more steps than that.

    table:   B S L, float64, the columns of times 0 .. `length` as `columns_of` lays them out.  L = 0 after a recorded
             step: `total`, `reading` and `scaled` are then those before it.
    total:   B, float64, of the last column.
    reading: B (Q S m), float64, after the last step; 0 where out of range.
    history: B N A+m, float64, N >= length, the log-weights and the pushed vectors so far.
    bottom:  B m, the vector of the bottom element.
    scaled:  B bool, whether the row is in range (else it is read in log space).
    length:  B long, the number of steps, the same in each row.  limit: B long, the most steps allowed, or -1.
    """

    table: Tensor
    total: Tensor
    reading: Tensor
    history: Tensor
    bottom: Tensor
    scaled: Tensor
    length: Tensor
    limit: Tensor


def columns_of(state: PushdownState, states: int, symbols: int) -> Columns:
    """Where the columns lie in a state's table."""
    limit = state.limit[0].item() if state.limit.numel() else -1
    return Columns(states, symbols, 1 + state.bottom.size(1), CHUNK, sys.maxsize if limit < 0 else limit + 1)


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
    history = bottom.new_zeros(batch_size, 0, count + bottom.size(0), dtype=torch.float64)
    limit = torch.full_like(length, -1 if max_length is None else max_length)
    return _begun(bottom.expand(batch_size, -1), history, limit, states, symbols)


def _begun(bottom: Tensor, history: Tensor, limit: Tensor, states: int, symbols: int) -> PushdownState:
    """The state before the first step, beside a history; bottom: B m; limit: B long."""
    B, size = bottom.shape
    state = PushdownState(
        history.new_empty(B, symbols, 0),
        history.new_ones(B),
        pad(bottom.double(), (0, (states * symbols - 1) * size)),
        history,
        bottom,
        torch.ones_like(limit, dtype=torch.bool),
        torch.zeros_like(limit),
        limit,
    )
    return state._replace(table=first_table(columns_of(state, states, symbols), bottom.detach().double()))


def pushdown_step(state: PushdownState, logits: Tensor, pushed: Tensor, *, states: int, symbols: int) -> PushdownState:
    """The state after one more step; the old one is consumed.

    logits: B A log-weights; pushed: B m.  Without gradients cells beyond `length` are written in place and the
    tables grow when they are full.  A step without gradients cuts off those of the steps before it.
    Raises ValueError if the shapes do not fit or the state's limit is reached.
    Cost: O(B t^2 S^2 Q^3) time at step t, O(B t S^2 Q^2) new memory; recorded next to nothing, but all of
    `pushdown_stack` at each reading.
    Stored after t steps: about 8 B S^2 Q^2 t^2 / 2 bytes, and room for a quarter more steps.
    """
    if torch.compiler.is_compiling():
        return _in_graph(state, logits.unsqueeze(1), pushed.unsqueeze(1), states, symbols)[1]
    done, columns = _length(state), columns_of(state, states, symbols)
    _check(state, columns, done, logits, pushed)
    if _recorded(state, logits, pushed):
        return _recorded_steps(state, done, logits.unsqueeze(1), pushed.unsqueeze(1))
    with torch.no_grad():
        return _written_step(state, columns, done, logits, pushed)


def pushdown_steps(
    state: PushdownState, logits: Tensor, pushed: Tensor, *, states: int, symbols: int
) -> tuple[Tensor, PushdownState]:
    """Readings B T (Q S m) after each of T steps, and the state after all of them; the old one is consumed.

    logits: B T A; pushed: B T m.  The same as `pushdown_step` and `pushdown_reading` in turn, but recorded steps are
    read in one pass over the whole history.
    """
    if torch.compiler.is_compiling():
        return _in_graph(state, logits, pushed, states, symbols)
    done = _length(state)
    _check(state, columns_of(state, states, symbols), done, logits, pushed, logits.size(1))
    if logits.size(1) and _recorded(state, logits, pushed):
        state = _recorded_steps(state, done, logits, pushed)
        return _all_readings(state)[:, done:], state
    readings = state.bottom.new_empty(*logits.shape[:2], state.reading.size(1))
    for t in range(logits.size(1)):
        state = pushdown_step(state, logits[:, t], pushed[:, t], states=states, symbols=symbols)
        readings[:, t] = pushdown_reading(state)
    return readings, state


def _in_graph(
    state: PushdownState, logits: Tensor, pushed: Tensor, states: int, symbols: int
) -> tuple[Tensor, PushdownState]:
    """As `pushdown_steps`.  Raises ValueError where gradients are recorded."""
    if _recorded(state, logits, pushed):
        raise ValueError("compiled steps of a pushdown state have no gradients: take them under torch.no_grad()")
    readings, *parts = _steps(*state, logits, pushed, states, symbols)
    return readings, PushdownState(*parts[:4], state.bottom, *parts[4:], state.limit)


def _fake_steps(table: Tensor, total: Tensor, reading: Tensor, history: Tensor, bottom: Tensor, *others: Any):
    scaled, length, _, logits, *_ = others
    kept = (x.new_empty(x.shape) for x in (table, total, reading, history, scaled, length))
    return bottom.new_empty(*logits.shape[:2], reading.size(1)), *kept


@opaque(_fake_steps)
def _steps(
    table: Tensor, total: Tensor, reading: Tensor, history: Tensor, bottom: Tensor, scaled: Tensor, length: Tensor,
    limit: Tensor, logits: Tensor, pushed: Tensor, states: int, symbols: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Readings and table, total, reading, history, scaled and length after steps for which the state has room.

    Raises ValueError if there is no room left.
    """
    state = PushdownState(table.clone(), total, reading, history.clone(), bottom, scaled, length, limit)
    with torch.no_grad():
        readings, after = pushdown_steps(state, logits, pushed, states=states, symbols=symbols)
    if after.table.shape != table.shape or after.history.shape != history.shape:
        raise ValueError("compiled steps need a pushdown state with room, as it has after some steps that are not")
    return readings, *after[:4], *after[5:7]


def pushdown_reading(state: PushdownState) -> Tensor:
    """Readings after the last step, B (Q S m), in the data type of the bottom vector; zeros where no run is left.

    Before the first step: the bottom vector in state 0 and symbol 0.
    """
    return _reading(*state)


@opaque(lambda table, total, reading, history, bottom, *_: bottom.new_empty(reading.shape))
def _reading(
    table: Tensor, total: Tensor, reading: Tensor, history: Tensor, bottom: Tensor, scaled: Tensor, length: Tensor,
    limit: Tensor,
) -> Tensor:
    state = PushdownState(table, total, reading, history, bottom, scaled, length, limit)
    if state.table.size(2) == 0:
        return _all_readings(state)[:, -1]
    readings = state.reading
    if not all(state.scaled.tolist()):
        rows = (~state.scaled).nonzero().squeeze(1)
        logits, pushed, bottom, states, symbols = _since_the_start(state)
        some = (x.index_select(0, rows) for x in (logits, pushed, bottom))
        readings = readings.index_copy(0, rows, pushdown_log(*some, states, symbols)[:, -1].flatten(1))
    return readings.to(state.bottom.dtype)


def _all_readings(state: PushdownState) -> Tensor:
    *inputs, states, symbols = _since_the_start(state)
    return pushdown_stack(*inputs, states=states, symbols=symbols).to(state.bottom.dtype)


def _since_the_start(state: PushdownState) -> tuple[Tensor, Tensor, Tensor, int, int]:
    """logits B T A, pushed B T m, bottom B m, float64; states and symbols."""
    size, symbols = state.bottom.size(1), state.table.size(1)
    logits, pushed = state.history[:, : _length(state)].split([state.history.size(2) - size, size], 2)
    return logits, pushed, state.bottom.double(), state.reading.size(1) // (size * symbols), symbols


def _length(state: PushdownState) -> int:
    lengths = set(state.length.tolist())
    if len(lengths) > 1:
        raise ValueError(f"expected a pushdown state of one length, got rows of {sorted(lengths)} steps")
    if not lengths:  # of no rows the history of recorded steps tells
        return 0 if state.table.size(2) else state.history.size(1)
    return lengths.pop()


def _check(state: PushdownState, columns: Columns, done: int, logits: Tensor, pushed: Tensor, *steps: int) -> None:
    """logits: B A; pushed: B m; with `steps` between both axes if that is given."""
    B, size = state.bottom.shape
    expected = (B, *steps, transition_count(columns.states, columns.symbols)), (B, *steps, size)
    if (logits.shape, pushed.shape) != expected:
        wanted = " and pushed ".join(" ".join(map(str, shape)) for shape in expected)
        raise ValueError(f"expected logits {wanted}, got {tuple(logits.shape)} and {tuple(pushed.shape)}")
    if columns.times <= done + sum(steps or (1,)):
        raise ValueError(f"the stack has taken {done} steps and was made for at most {columns.times - 1} (max_length)")


def _recorded(state: PushdownState, *inputs: Tensor) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in (state.history, state.bottom, *inputs))


def _recorded_steps(state: PushdownState, done: int, logits: Tensor, pushed: Tensor) -> PushdownState:
    """logits: B T A; pushed: B T m."""
    new = torch.cat([logits.double(), pushed.double()], 2)
    return state._replace(
        table=state.table[:, :, :0],
        history=torch.cat([state.history[:, :done], new], 1),
        length=state.length + logits.size(1),
    )


def _written_step(state: PushdownState, columns: Columns, done: int, logits: Tensor, pushed: Tensor) -> PushdownState:
    """A step that is written into the state's own table, or a copy of it where rows were taken without one."""
    bottom = state.bottom.detach()
    if state.table.size(2) == 0:
        earlier = _since_the_start(state)[:2]
        state = _begun(bottom, state.history[:, :0], state.limit, columns.states, columns.symbols)
        for time in range(done):
            state = _written_step(state, columns, time, *(x[:, time] for x in earlier))
    table, history = columns.opened(state.table.contiguous(), done + 1), state.history.contiguous()
    if history.size(1) == done:
        history = pad(history, (0, 0, 0, max(CHUNK, done)))
    inputs = torch.cat([logits, pushed], 1, out=history.select(1, done))
    totals, reading, scaled = write_step(columns, table, inputs.contiguous(), state.total, state.scaled, done)
    return PushdownState(table, totals, reading, history, bottom, scaled, state.length + 1, state.limit)
