"""The nondeterministic stack: brute force, reference numbers, extreme weights, gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqstruct.ops.pushdown import pushdown_stack, stack, transition_count
from seqstruct.ops.pushdown.log import pushdown_log
from seqstruct.ops.pushdown.walk import growth
from seqstruct.ops.superposition import superposition_stack
from tests.ops.pushdown.enumeration import readings as by_enumeration

SMALL = ["01", "02", "11_n1", "12_n2", "13_S1", "03", "04", "05", "06", "07", "08_pm50", "14_pm50_n40", "15_logsigmoid"]
LONG = ["09_n60", "10_shift50_n60"]
INF = float("inf")


def draw(generator, B, T, Q, S, m, spread=1.0, dtype=torch.float64):
    logits = spread * torch.randn(B, T, transition_count(Q, S), generator=generator, dtype=dtype)
    pushed = torch.randn(B, T, m, generator=generator, dtype=dtype)
    return logits, pushed, torch.rand(m, generator=generator, dtype=dtype)


def in_log_space(logits, pushed, bottom, *, states, symbols):
    return pushdown_log(logits, pushed, bottom.expand(pushed.size(0), -1), states, symbols).flatten(2)


def with_gradients(form, inputs, weights, **sizes):
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    readings = form(*inputs, **sizes)
    return readings.detach(), torch.autograd.grad((readings * weights).sum(), inputs)


def check_same(form, other, inputs, generator, atol, gradient_atol, *, states, symbols):
    """Readings of two forms are the same, and so are finite gradients of a weighted sum of them; both readings."""
    batch, length, size = inputs[1].shape
    weights = torch.randn(batch, length, states * symbols * size, generator=generator, dtype=torch.float64)
    expected, truth = with_gradients(other, inputs, weights, states=states, symbols=symbols)
    readings, grads = with_gradients(form, inputs, weights, states=states, symbols=symbols)
    torch.testing.assert_close(readings, expected, rtol=0, atol=atol)
    torch.testing.assert_close(grads, truth, rtol=0, atol=gradient_atol)
    assert all(grad.isfinite().all() for grad in truth)
    return readings, expected


def check_reference(path, form):
    case = {k: torch.from_numpy(np.asarray(v)) for k, v in np.load(path).items() if v.dtype.kind == "f"}
    Q, S = case["push"].shape[2:4]
    logits, log_pushed, bottom = (
        case[name].clone().requires_grad_() for name in ("logits", "log_pushed", "bottom_logits")
    )
    readings = form(logits, log_pushed.exp(), bottom.sigmoid(), states=Q, symbols=S)
    torch.testing.assert_close(readings, case["readings"], rtol=0, atol=1e-9)
    (readings * case["weights"]).sum().backward()
    for found, name in ((logits, "logits"), (log_pushed, "log_pushed"), (bottom, "bottom_logits")):
        torch.testing.assert_close(found.grad, case[f"grad_{name}"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SMALL + LONG)
def test_reference_numbers(golden, name):
    check_reference(golden("stack", f"nd_{name}.npz"), pushdown_stack)


@pytest.mark.parametrize("name", SMALL)
def test_reference_numbers_in_log_space(golden, name):
    check_reference(golden("stack", f"nd_{name}.npz"), in_log_space)


@pytest.mark.parametrize("form", [pushdown_stack, in_log_space])
@pytest.mark.parametrize("T", [1, 2, 3, 5])
def test_gradcheck(generator, form, T):
    inputs = [x.requires_grad_() for x in draw(generator, 2, T, 2, 2, 2)]
    assert torch.autograd.gradcheck(lambda *inputs: form(*inputs, states=2, symbols=2), inputs)


@pytest.mark.parametrize("T", [15, 16, 17, 33, 47])  # around the limits of blocks
def test_both_forms_agree_at_every_length(generator, T):
    inputs = draw(generator, 2, T, 2, 2, 3, spread=2.0)
    check_same(pushdown_stack, in_log_space, inputs, generator, 1e-11, 1e-10, states=2, symbols=2)


@pytest.mark.parametrize("spread", [50.0, 100.0, 1000.0])
def test_extreme_weights_fall_back_row_by_row(generator, spread):
    T, sizes = 12, {"states": 2, "symbols": 3}
    logits, pushed, bottom = draw(generator, 3, T, 2, 3, 2)
    logits[1] *= spread
    check_same(pushdown_stack, in_log_space, (logits, pushed, bottom), generator, 1e-9, 1e-9, **sizes)


@pytest.mark.parametrize("spread", [50.0, 100.0])
def test_plus_and_minus_a_lot(generator, spread):
    """Logits near +-spread, as sign times spread plus noise, over many steps."""
    sizes = {"states": 2, "symbols": 2}
    logits, pushed, bottom = draw(generator, 2, 30, 2, 2, 2)
    logits += spread * torch.randn(logits.shape, generator=generator, dtype=torch.float64).sign()
    check_same(pushdown_stack, in_log_space, (logits, pushed, bottom), generator, 1e-9, 1e-9, **sizes)


def doomed(generator):
    """Row 0: four steps draw all weight to state 1 for good, by exp(400) each; the fifth takes as much from it."""
    logits, pushed, bottom = draw(generator, 2, 5, 2, 2, 2)
    table = logits.view(2, 5, 4, 10)
    table[0, :4, :, [2, 3, 6, 7, 9]] += 400.0
    table[0, :4, 2:, [0, 1, 4, 5, 8]] -= 2000.0
    table[0, 4, 2:] -= 1600.0
    return logits, pushed, bottom


def test_underflow_is_found_and_mended(generator):
    inputs = doomed(generator)
    readings, _ = check_same(pushdown_stack, in_log_space, inputs, generator, 1e-10, 1e-10, states=2, symbols=2)
    assert (readings[0, 4].view(2, 2, 2).abs().amax((1, 2)) > 1e-3).all()  # both states matter in the end


def falling(generator, B, T, by):
    """State 0 goes on with exp(-by) of what state 1 goes on with, which goes to state 0 in any case."""
    logits, pushed, bottom = draw(generator, B, T, 2, 2, 2)
    table = logits.view(B, T, 4, 10)
    table[:, :, :2] -= by
    table[:, :, 2:, [2, 3, 6, 7, 9]] -= 2 * by
    return logits, pushed, bottom


@pytest.mark.parametrize(("T", "by"), [(3, 400.0), (47, 30.0), (130, 8.0)])
def test_weights_that_fall_at_each_step_need_no_logarithms(generator, monkeypatch, T, by):
    inputs = falling(generator, 5, T, by)
    inputs[0][3] *= 0.01  # in range
    monkeypatch.setattr(stack, "NUMBERS", 3 * (4 * T) ** 2)  # three rows together
    weights = torch.randn(5, T, 8, generator=generator, dtype=torch.float64)
    expected, truth = with_gradients(in_log_space, inputs, weights, states=2, symbols=2)
    monkeypatch.setattr(stack, "pushdown_log", None)
    readings, grads = with_gradients(pushdown_stack, inputs, weights, states=2, symbols=2)
    torch.testing.assert_close(readings, expected, rtol=0, atol=1e-11)
    torch.testing.assert_close(grads, truth, rtol=0, atol=1e-10)


def test_gradcheck_where_weights_fall(generator):
    inputs = [x.requires_grad_() for x in falling(generator, 2, 3, 400.0)]
    assert torch.autograd.gradcheck(lambda *inputs: pushdown_stack(*inputs, states=2, symbols=2), inputs)


def test_each_row_by_what_fits_it(generator):
    """In range, falling, out of any range, without a run, and with a state of exp(800) beside the other."""
    rows = [draw(generator, 1, 5, 2, 2, 2), falling(generator, 1, 5, 300.0), doomed(generator)]
    rows += [draw(generator, 1, 5, 2, 2, 2), falling(generator, 1, 5, 400.0)]
    logits, pushed = (torch.cat([row[i][:1] for row in rows]) for i in range(2))
    logits[3, 2] = -INF
    logits.view(5, 5, 4, 10)[4, :, 2:] += 400.0
    inputs = logits, pushed, rows[0][2]
    check_same(pushdown_stack, in_log_space, inputs, generator, 1e-10, 1e-10, states=2, symbols=2)


def test_a_row_whose_tables_overflow_once_they_are_scaled(generator):
    """Row 0 falls.  State 1 of row 1, never reached, never pushes and multiplies what is there by exp(200) a step."""
    logits, pushed, bottom = falling(generator, 2, 8, 200.0)
    table = logits.view(2, 8, 4, 10)
    table[1, :, :2, [2, 3, 6, 7, 9]] = -INF
    table[1, :, 2:, :4] = -INF
    table[1, :, 2:, 4:] += 200.0
    table[1, :, 2:, [6, 7]] += 200.0
    assert growth(logits, 2, 2)[1].all()
    inputs = logits, pushed, bottom
    check_same(pushdown_stack, in_log_space, inputs, generator, 1e-11, 1e-10, states=2, symbols=2)


@pytest.mark.parametrize("form", [pushdown_stack, in_log_space])
def test_impossible_transitions(generator, form):
    """-inf logits: values as with weight 0, finite gradients, 0 where the logit is -inf."""
    T, Q, S = 3, 2, 2
    logits, pushed, bottom = draw(generator, 1, T, Q, S, 2)
    blocked = torch.rand(logits.shape, generator=generator) < 0.4
    logits = logits.masked_fill(blocked, -INF)
    expected = by_enumeration(logits[0], pushed[0], bottom, Q, S).nan_to_num(0.0)
    weights = torch.randn(1, T, 8, generator=generator, dtype=torch.float64)
    readings, grads = with_gradients(form, (logits, pushed, bottom), weights, states=Q, symbols=S)
    torch.testing.assert_close(readings[0], expected, rtol=0, atol=1e-13)
    assert all(torch.isfinite(grad).all() for grad in grads)
    assert not grads[0][blocked].any()


@pytest.mark.parametrize("form", [pushdown_stack, in_log_space])
def test_no_run_left_reads_zeros(generator, form):
    """Row 0 can only pop at step 3, where the stack holds the bottom alone; row 1 has no transition at step 2."""
    logits, pushed, bottom = draw(generator, 3, 5, 2, 2, 2)
    table = logits.view(3, 5, 4, 10)
    table[0, :, :, :4] = -INF
    table[0, 2, :, :8] = -INF
    table[1, 1] = -INF
    weights = torch.randn(3, 5, 8, generator=generator, dtype=torch.float64)
    readings, grads = with_gradients(form, (logits, pushed, bottom), weights, states=2, symbols=2)
    assert not readings[0, 2:].any()
    assert not readings[1, 1:].any()
    assert readings[0, 1].any() and readings[1, 0].any() and readings[2].any(-1).all()
    assert all(torch.isfinite(grad).all() for grad in grads)
    alone = form(logits[2:], pushed[2:], bottom, states=2, symbols=2)
    torch.testing.assert_close(readings[2:], alone, rtol=0, atol=1e-13)


def test_float32_stays_finite_and_close(generator):
    T, sizes = 40, {"states": 2, "symbols": 3}
    for spread in (1.0, 30.0, 100.0):
        inputs = [x.float() for x in draw(generator, 2, T, 2, 3, 5, spread)]
        weights = torch.randn(2, T, 30, generator=generator)
        readings, grads = with_gradients(pushdown_stack, inputs, weights, **sizes)
        expected, truth = with_gradients(pushdown_stack, [x.double() for x in inputs], weights.double(), **sizes)
        assert readings.dtype == torch.float32
        torch.testing.assert_close(readings.double(), expected, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close([x.double() for x in grads], list(truth), rtol=1e-5, atol=1e-5)


def test_a_constant_added_to_a_step_changes_nothing(generator):
    logits, pushed, bottom = draw(generator, 2, 13, 2, 2, 3)
    shifted = logits + 300 * torch.randn(2, 13, 1, generator=generator, dtype=torch.float64)
    readings = [pushdown_stack(x, pushed, bottom, states=2, symbols=2) for x in (logits, shifted)]
    torch.testing.assert_close(*readings, rtol=0, atol=1e-9)


@pytest.mark.parametrize("T", [0, 1])
def test_shortest_sequences(generator, T):
    logits, pushed, bottom = draw(generator, 5, T, 2, 3, 7)
    assert pushdown_stack(logits, pushed, bottom, states=2, symbols=3).shape == (5, T, 42)


def test_superposition_is_a_special_case(generator):
    """One state and symbol, normalised weights, zero vectors below (DuSell and Chiang 2024, section 4)."""
    T, m = 6, 3
    actions = torch.rand(2, T, 3, generator=generator, dtype=torch.float64).softmax(-1)
    pushed = torch.randn(2, T, m, generator=generator, dtype=torch.float64)
    push, pop, noop = actions.log().unbind(-1)
    logits = torch.full((2, 2 * T, 3), -INF, dtype=torch.float64)
    logits[:, :T, 0] = 0.0  # T zero vectors, so that popping the empty stack uncovers another zero
    logits[:, T:] = torch.stack([push, noop, pop], -1)
    vectors = torch.cat([torch.zeros_like(pushed), pushed], 1)
    readings = pushdown_stack(logits, vectors, torch.zeros(m, dtype=torch.float64), states=1, symbols=1)
    torch.testing.assert_close(readings[:, T:], superposition_stack(actions, pushed)[0], rtol=0, atol=1e-13)


def test_certain_transitions_are_a_list(generator):
    """One run of weight 1: the reading is the top of an ordinary stack, in the place of its state and symbol."""
    T, Q, S, m = 13, 2, 3, 2
    logits = torch.full((1, T, transition_count(Q, S)), -INF)
    pushed = torch.randn(1, T, m, generator=generator)
    bottom = torch.rand(m, generator=generator)
    table, stack, state = logits.view(T, Q * S, -1), [(0, bottom)], 0
    expected = torch.zeros(T, Q, S, m)
    for t in range(T):
        count = 2 * Q * S + (Q if len(stack) > 1 else 0)
        chosen = int(torch.randint(count, (), generator=generator))
        table[t, state * S + stack[-1][0], chosen] = 0.0
        kind, target = divmod(chosen, Q * S)
        state, symbol = divmod(target, S) if kind < 2 else (target, 0)
        if kind == 0:
            stack.append((symbol, pushed[0, t]))
        elif kind == 1:
            stack[-1] = (symbol, stack[-1][1])
        else:
            stack.pop()
        expected[t, state, stack[-1][0]] = stack[-1][1]
    readings = pushdown_stack(logits, pushed, bottom, states=Q, symbols=S)
    torch.testing.assert_close(readings[0], expected.flatten(1), rtol=0, atol=0)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="expected logits B T 84"):
        pushdown_stack(torch.zeros(2, 5, 83), torch.zeros(2, 5, 3), torch.zeros(3), states=2, symbols=3)
    with pytest.raises(ValueError, match="1 or more states"):
        pushdown_stack(torch.zeros(2, 5, 83), torch.zeros(2, 5, 3), torch.zeros(3), states=0, symbols=3)
