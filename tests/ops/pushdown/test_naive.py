"""The recurrence of the nondeterministic stack against every single run, and every other form of it against that."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.pushdown import PushdownTape, most_probable_run, pushdown_stack, reading_order, step_order
from seqstruct.ops.pushdown.naive import naive_readings, naive_tops
from seqstruct.ops.semiring import LogSemiring, MaxSemiring, RealSemiring
from tests.ops.pushdown.enumeration import readings as by_enumeration
from tests.ops.pushdown.test_pushdown import INF, check_same, draw, in_log_space, with_gradients
from tests.ops.pushdown.test_recorded_steps import in_segments
from tests.ops.pushdown.test_step import by_steps

FORMS = [pushdown_stack, in_log_space, by_steps, in_segments]
SIZES = [(1, 1, 1), (5, 1, 2), (5, 2, 1), (1, 2, 3), (7, 2, 3), (6, 3, 2)]


@pytest.mark.parametrize(("T", "Q", "S"), [(5, 1, 2), (3, 2, 2), (2, 3, 2), (5, 2, 1), (1, 2, 3)])
def test_sum_over_all_runs(generator, T, Q, S):
    logits, pushed, bottom = draw(generator, 1, T, Q, S, 2)
    expected = by_enumeration(logits[0], pushed[0], bottom, Q, S)
    readings = naive_readings(logits, pushed, bottom, states=Q, symbols=S)
    torch.testing.assert_close(readings[0], expected, rtol=0, atol=1e-13)


def test_the_best_run_is_that_of_the_max_semiring(generator):
    logits, *_ = draw(generator, 3, 6, 2, 3, 1, spread=3.0)
    best = naive_tops(logits, MaxSemiring(), states=2, symbols=3)[-1][0].flatten(1).amax(1)
    runs = most_probable_run(logits, states=2, symbols=3)
    torch.testing.assert_close(torch.tensor([run.log_weight for run in runs], dtype=best.dtype), best)


def test_semirings_agree(generator):
    logits, *_ = draw(generator, 3, 6, 2, 3, 1)
    logs, weights = (naive_tops(logits, s, states=2, symbols=3) for s in (LogSemiring(), RealSemiring()))
    assert [x.shape for x in logs] == [(1, 3, t + 1, 6) for t in range(7)]
    for log, weight in zip(logs, weights, strict=True):
        torch.testing.assert_close(log.exp(), weight)


@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize(("T", "Q", "S"), SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_other_forms(generator, form, T, Q, S, spread):
    inputs = draw(generator, 2, T, Q, S, 2, spread)
    _, expected = check_same(form, naive_readings, inputs, generator, 1e-11, 1e-10, states=Q, symbols=S)
    with torch.no_grad():
        torch.testing.assert_close(form(*inputs, states=Q, symbols=S), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_impossible_transitions(generator, form):
    logits, pushed, bottom = draw(generator, 2, 5, 2, 2, 2)
    logits = logits.masked_fill(torch.rand(logits.shape, generator=generator) < 0.5, -INF)
    logits[0, 3] = -INF
    inputs = logits, pushed, bottom
    readings, _ = check_same(form, naive_readings, inputs, generator, 1e-12, 1e-11, states=2, symbols=2)
    assert not readings[0, 3:].any()


def through_tape(kind, logits, pushed, bottom, weights, *, states, symbols):
    """Readings of a tape, and gradients of the log-weights, of the logarithms of pushed vectors, and of the bottom."""
    B, T, m = pushed.shape
    tape = kind(bottom.expand(B, -1), T, states=states, symbols=symbols, sigmoid=False)
    order, places = step_order(states, symbols, m), reading_order(states, symbols, m)
    controls = torch.cat([logits, pushed.log()], 2)[..., order]
    readings, grads = torch.empty_like(weights), torch.empty_like(controls)
    for t in range(T):
        tape.step(controls[:, t], readings[:, t])
    assert tape.in_range().all()
    tape.begin_backward()
    for t in range(T - 1, -1, -1):
        tape.step_backward(weights[:, t, places], grads[:, t])
    of_bottom = tape.start_gradient(torch.zeros_like(weights[:, 0])).sum(0)
    found = [grads[..., order.argsort()].split([logits.size(2), m], 2), of_bottom]
    return readings[..., places.argsort()], [*found[0], of_bottom]


def check_tape(kind, generator, T, Q, S):
    """A kind of tape against the recurrence."""
    logits, pushed, bottom = draw(generator, 2, T, Q, S, 2)
    inputs = logits, pushed.abs() + 0.1, bottom
    weights = torch.randn(2, T, Q * S * 2, generator=generator, dtype=torch.float64)
    expected, truth = with_gradients(naive_readings, inputs, weights, states=Q, symbols=S)
    readings, grads = through_tape(kind, *inputs, weights, states=Q, symbols=S)
    torch.testing.assert_close(readings, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(grads, [truth[0], truth[1] * inputs[1], truth[2]], rtol=0, atol=1e-11)


@pytest.mark.parametrize(("T", "Q", "S"), [*SIZES, (PushdownTape.CHUNK + 2, 1, 2)])
def test_tape(generator, T, Q, S):
    check_tape(PushdownTape, generator, T, Q, S)
