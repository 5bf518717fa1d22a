"""The nondeterministic stack step by step: equal to the parallel form, reorderable, bounded, exact out of range."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.pushdown import (
    PushdownState,
    columns,
    pushdown_initial,
    pushdown_reading,
    pushdown_stack,
    pushdown_step,
    pushdown_steps,
)
from seqstruct.ops.pushdown.walk import CHUNK
from tests.ops.pushdown.test_pushdown import check_reference, check_same, doomed, draw, with_gradients

SIZES = {"states": 2, "symbols": 3}


def by_steps(logits, pushed, bottom, *, states, symbols):
    state = pushdown_initial(bottom, pushed.size(0), states=states, symbols=symbols)
    return advance(state, logits, pushed, states=states, symbols=symbols)[0]


def advance(state, logits, pushed, **sizes):
    readings = []
    for t in range(logits.size(1)):
        state = pushdown_step(state, logits[:, t], pushed[:, t], **sizes)
        readings.append(pushdown_reading(state))
    return torch.stack(readings, 1), state


@pytest.mark.parametrize(
    "name", ["01", "02", "11_n1", "12_n2", "13_S1", "05", "08_pm50", "14_pm50_n40", "15_logsigmoid"]
)
def test_reference_numbers(golden, name):
    check_reference(golden("stack", f"nd_{name}.npz"), by_steps)


@pytest.mark.parametrize("T", [1, 2, 13, 37])
def test_steps_equal_the_parallel_form(generator, T):
    inputs = draw(generator, 2, T, 2, 3, 2)
    _, expected = check_same(by_steps, pushdown_stack, inputs, generator, 1e-12, 1e-11, **SIZES)
    with torch.no_grad():
        torch.testing.assert_close(by_steps(*inputs, **SIZES), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("T", [13, 37])
def test_sums_in_place_are_the_same(generator, T, monkeypatch):
    inputs = draw(generator, 2, T, 2, 3, 2)
    monkeypatch.setattr(columns, "FEW", 6)
    monkeypatch.setattr(columns, "LONG", 1)
    with torch.no_grad():
        expected = pushdown_stack(*inputs, **SIZES)
        torch.testing.assert_close(by_steps(*inputs, **SIZES), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("spread", [50.0, 100.0, 300.0])
def test_extreme_weights(generator, spread):
    logits, pushed, bottom = draw(generator, 3, 9, 2, 3, 2)
    logits[1] *= spread
    check_same(by_steps, pushdown_stack, (logits, pushed, bottom), generator, 1e-9, 1e-9, **SIZES)


def test_out_of_range_rows_are_read_in_log_space(generator):
    inputs = doomed(generator)
    state = pushdown_initial(inputs[2], 2, states=2, symbols=2)
    readings, state = advance(state, *inputs[:2], states=2, symbols=2)
    assert state.scaled.tolist() == [False, True]
    torch.testing.assert_close(readings, pushdown_stack(*inputs, states=2, symbols=2), rtol=0, atol=1e-12)


def test_reorder_keeps_gradients(generator):
    inputs = draw(generator, 3, 7, 2, 3, 2)
    order = torch.tensor([2, 0])
    weights = torch.randn(2, 7, 12, generator=generator, dtype=torch.float64)

    def reordered(logits, pushed, bottom, **sizes):
        first, state = advance(pushdown_initial(bottom, 3, **sizes), logits[:, :4], pushed[:, :4], **sizes)
        state = PushdownState(*(x.index_select(0, order) for x in state))
        second, _ = advance(state, logits[order, 4:], pushed[order, 4:], **sizes)
        return torch.cat([first[order], second], 1)

    def permuted(logits, pushed, bottom, **sizes):
        return pushdown_stack(logits[order], pushed[order], bottom, **sizes)

    readings, grads = with_gradients(reordered, inputs, weights, **SIZES)
    expected, truth = with_gradients(permuted, inputs, weights, **SIZES)
    torch.testing.assert_close(readings, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(grads, truth, rtol=0, atol=1e-11)


def test_gradients_may_come_and_go(generator):
    """A state made without gradients goes on with them and the other way round."""
    logits, pushed, bottom = draw(generator, 2, 9, 2, 3, 2)
    expected = pushdown_stack(logits, pushed, bottom, **SIZES)
    with torch.no_grad():
        first, state = advance(pushdown_initial(bottom, 2, **SIZES), logits[:, :3], pushed[:, :3], **SIZES)
    tail = logits[:, 3:6].clone().requires_grad_()
    second, state = advance(state, tail, pushed[:, 3:6], **SIZES)
    with torch.no_grad():
        third, _ = advance(state, logits[:, 6:], pushed[:, 6:], **SIZES)
    torch.testing.assert_close(torch.cat([first, second.detach(), third], 1), expected, rtol=0, atol=1e-12)
    whole = logits.clone().requires_grad_()
    pushdown_stack(whole, pushed, bottom, **SIZES)[:, 3:6].sum().backward()
    second.sum().backward()
    torch.testing.assert_close(tail.grad, whole.grad[:, 3:6], rtol=0, atol=1e-12)


@pytest.mark.parametrize("limit", [None, CHUNK - 1, CHUNK, 200])
def test_tables_are_extended_in_place_and_bounded(generator, limit):
    T, (states, symbols, size) = min(limit or 200, 3 * CHUNK + 5), (2, 3, 2)
    logits, pushed, bottom = draw(generator, 2, T, states, symbols, size)
    state, tables = pushdown_initial(bottom, 2, max_length=limit, **SIZES), set()
    readings, top = [], states * symbols
    with torch.no_grad():
        for t in range(T):
            state = pushdown_step(state, logits[:, t], pushed[:, t], **SIZES)
            readings.append(pushdown_reading(state))
            tables.add(state.table.data_ptr())
            stored, most = (
                2 * top * ((1 + size) * times + top * times * (times - 1) // 2)
                for times in (t + 2, (5 * (t + 2)) // 4 + 2 * CHUNK)
            )
            assert stored <= state.table.numel() <= most
    assert len(tables) <= 4
    torch.testing.assert_close(
        torch.stack(readings, 1), pushdown_stack(logits, pushed, bottom, **SIZES), rtol=0, atol=1e-12
    )


def test_reading_before_the_first_step(generator):
    bottom = torch.rand(5, generator=generator)
    reading = pushdown_reading(pushdown_initial(bottom, 3, **SIZES))
    assert reading.dtype == torch.float32
    assert torch.equal(reading[:, :5], bottom.expand(3, 5))
    assert not reading[:, 5:].any()


def test_limits_and_shapes(generator):
    logits, pushed, bottom = draw(generator, 2, 3, 2, 3, 2)
    state = pushdown_initial(bottom, 2, max_length=2, **SIZES)
    _, state = advance(state, logits[:, :2], pushed[:, :2], **SIZES)
    with pytest.raises(ValueError, match=r"at most 2 \(max_length\)"):
        pushdown_step(state, logits[:, 2], pushed[:, 2], **SIZES)
    with pytest.raises(ValueError, match="max_length of 1 or more"):
        pushdown_initial(bottom, 2, max_length=0, **SIZES)
    with pytest.raises(ValueError, match="expected logits 2 84"):
        pushdown_step(pushdown_initial(bottom, 2, **SIZES), logits[:, 0, :-1], pushed[:, 0], **SIZES)
    mixed = pushdown_initial(bottom, 2, **SIZES)._replace(length=torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"has taken 0 steps and was made for at most 2 \(max_length\)"):
        pushdown_steps(pushdown_initial(bottom, 2, max_length=2, **SIZES), logits, pushed, **SIZES)
    with pytest.raises(ValueError, match="one length"):
        pushdown_step(mixed, logits[:, 0], pushed[:, 0], **SIZES)
