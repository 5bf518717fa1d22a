"""The compiled step of the nondeterministic stack against that in PyTorch."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.pushdown import pushdown_initial, pushdown_reading, pushdown_stack, pushdown_step, transition_count
from seqstruct.ops.pushdown.step import columns_of
from seqstruct.ops.pushdown.walk import CHUNK
from tests.ops.pushdown.test_pushdown import doomed, draw

SIZES = {"states": 2, "symbols": 3}
MANY = 12 * CHUNK  # steps until the table is worth several threads


@torch.no_grad()
def advance(state, logits, pushed, **sizes):
    """Readings after each step, totals, which rows are in range, and the last state."""
    readings, totals, scaled = [], [], []
    for t in range(logits.size(1)):
        state = pushdown_step(state, logits[:, t], pushed[:, t], **sizes)
        readings.append(state.reading)
        totals.append(state.total)
        scaled.append(state.scaled)
    return torch.stack(readings, 1), torch.stack(totals, 1), torch.stack(scaled, 1), state


def both(compiled, logits, pushed, bottom, **sizes):
    """What `advance` gives without and with kernels."""
    results = []
    for on in (False, True):
        compiled(on)
        results.append(advance(pushdown_initial(bottom, len(pushed), **sizes), logits, pushed, **sizes))
    return results


def columns(state, times, *, states, symbols):
    """The table's columns, one after the other."""
    layout = columns_of(state, states, symbols)
    chunks = layout.chunks(state.table, times)
    return torch.cat([layout.column(chunks, time).flatten(1) for time in range(times)], 1)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 4, 2), (2, 3, 5), (3, 2, 1), (4, 1, 3), (5, 3, 2)], ids=str)
def test_steps_are_those_of_pytorch(shape, compiled, generator):
    """Past the end of a chunk of times."""
    states, symbols, size = shape
    sizes = {"states": states, "symbols": symbols}
    steps = CHUNK + 9
    inputs = draw(generator, 2, steps, states, symbols, size)
    (*expected, before), (*results, after) = both(compiled, *inputs, **sizes)
    torch.testing.assert_close(results, expected, rtol=1e-10, atol=1e-12)
    tables = (columns(x, steps + 1, **sizes) for x in (after, before))
    torch.testing.assert_close(*tables, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(after.history, before.history)


@pytest.mark.parametrize("rows", [slice(None, None, 2), slice(1, None)], ids=str)
@pytest.mark.parametrize("on", [False, True])
def test_steps_go_on_from_rows_that_are_a_slice(on, rows, compiled, generator):
    compiled(on)
    logits, pushed, bottom = draw(generator, 5, CHUNK + 5, 2, 3, 4)
    expected = pushdown_stack(logits, pushed, bottom, **SIZES).flatten(2)[rows, 7:]
    state = advance(pushdown_initial(bottom, 5, **SIZES), logits[:, :7], pushed[:, :7], **SIZES)[3]
    state = type(state)(*(x[rows] for x in state))
    found = advance(state, logits[rows, 7:], pushed[rows, 7:], **SIZES)[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_inputs_in_single_precision_are_computed_in_double(compiled, generator):
    inputs = [x.float() for x in draw(generator, 3, 13, 2, 3, 5)]
    (*expected, _), (*results, state) = both(compiled, *inputs, **SIZES)
    torch.testing.assert_close(results, expected, rtol=1e-10, atol=1e-12)
    assert results[0].dtype == torch.float64
    assert pushdown_reading(state).dtype == torch.float32


@pytest.mark.parametrize("spread", [50.0, 100.0, 300.0])
def test_extreme_weights(spread, compiled, generator):
    logits, pushed, bottom = draw(generator, 3, 23, 2, 3, 2)
    logits[1] *= spread
    (*expected, _), (*results, state) = both(compiled, logits, pushed, bottom, **SIZES)
    torch.testing.assert_close(results, expected, rtol=1e-9, atol=1e-9)
    compiled(False)
    exact = pushdown_stack(logits, pushed, bottom, **SIZES)[:, -1]
    torch.testing.assert_close(pushdown_reading(state), exact, rtol=0, atol=1e-9)


def test_out_of_range_rows_are_read_in_log_space(compiled, generator):
    logits, pushed, bottom = doomed(generator)
    (*expected, _), (*results, state) = both(compiled, logits, pushed, bottom, states=2, symbols=2)
    assert state.scaled.tolist() == [False, True]
    torch.testing.assert_close(results, expected, rtol=1e-10, atol=1e-12)
    compiled(False)
    exact = pushdown_stack(logits, pushed, bottom, states=2, symbols=2)[:, -1]
    torch.testing.assert_close(pushdown_reading(state), exact, rtol=0, atol=1e-12)


def test_no_run_left_reads_zeros(compiled, generator):
    logits, pushed, bottom = draw(generator, 2, 6, 2, 3, 2)
    logits[0, 1] = -torch.inf
    (*expected, _), (*results, state) = both(compiled, logits, pushed, bottom, **SIZES)
    torch.testing.assert_close(results, expected, rtol=1e-10, atol=1e-12)
    assert state.scaled.tolist() == [False, True]
    assert not pushdown_reading(state)[0].any()


def test_transitions_that_cannot_be_taken(compiled, generator):
    logits, pushed, bottom = draw(generator, 2, CHUNK + 3, 2, 3, 2)
    logits.masked_fill_(torch.rand(logits.shape, generator=generator) < 0.6, -torch.inf)
    (*expected, _), (*results, _) = both(compiled, logits, pushed, bottom, **SIZES)
    torch.testing.assert_close(results, expected, rtol=1e-10, atol=1e-12)


def test_no_sequences(compiled):
    compiled(True)
    state = pushdown_initial(torch.rand(5), 0, **SIZES)
    count = transition_count(2, 3)
    with torch.no_grad():
        state = pushdown_step(state, torch.zeros(0, count), torch.zeros(0, 5), **SIZES)
    assert state.reading.shape == (0, 30)


def test_threads_share_symbols_and_columns(compiled, threads, generator):
    """A table of so many steps that one more is worth it; what it holds does not matter."""
    compiled(True)
    states, symbols, size = 2, 3, 5
    logits, pushed, bottom = draw(generator, 2, 1, states, symbols, size)
    state = pushdown_initial(bottom, 2, **SIZES)
    layout = columns_of(state, states, symbols)
    table = torch.zeros(2, symbols, layout.room(MANY + 2), dtype=torch.float64)
    chunks = layout.chunks(table, MANY + 1)
    for time in range(MANY + 1):
        column = layout.column(chunks, time)
        column.copy_(torch.rand(column.shape, generator=generator, dtype=torch.float64))
    history = torch.zeros(2, MANY + 1, logits.size(2) + size, dtype=torch.float64)
    state = state._replace(table=table, history=history, length=state.length + MANY)
    results = []
    for on, count in ((False, 1), (True, 1), (True, 2)):
        compiled(on)
        threads(count)
        *_, after = advance(state._replace(table=table.clone()), logits, pushed, **SIZES)
        column = layout.column(layout.chunks(after.table, MANY + 2), MANY + 1)
        results.append([after.reading, after.total, after.scaled, column])
    torch.testing.assert_close(results[1], results[0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(results[2], results[1], rtol=1e-14, atol=0)
