"""The pushdown automaton with limited memory: without a limit, by its recurrence, by enumeration, for ever."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.pushdown import limited_initial, limited_step, limited_steps, pushdown_stack, transition_count
from tests.ops.pushdown.enumeration import readings as by_enumeration


def draw(generator, B, T, m, states, symbols):
    logits = torch.randn(B, T, transition_count(states, symbols), generator=generator, dtype=torch.float64)
    pushed = torch.rand(B, T, m, generator=generator, dtype=torch.float64)
    return logits, pushed, torch.rand(m, generator=generator, dtype=torch.float64)


def readings_of(logits, pushed, bottom, padding_mask=None, **sizes):
    start = limited_initial(bottom, len(logits), states=sizes["states"], symbols=sizes["symbols"])
    return limited_steps(start, logits, pushed, padding_mask, **sizes)


@pytest.mark.parametrize("states, symbols, window", [(1, 2, 1), (2, 1, 2), (2, 2, 2), (1, 2, 3)])
def test_every_run(generator, states, symbols, window):
    logits, pushed, bottom = draw(generator, 1, 4 if states * symbols > 2 else 5, 2, states, symbols)
    readings, _ = readings_of(logits, pushed, bottom, states=states, symbols=symbols, window=window)
    expected = by_enumeration(logits[0], pushed[0], bottom, states, symbols, window)
    torch.testing.assert_close(readings[0], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("length, window, scale", [(13, 14, 1.0), (13, 20, 1.0), (21, 32, 200.0)])
def test_without_a_limit_values_and_gradients(generator, length, window, scale):
    logits, *rest = draw(generator, 3, length, 5, 2, 3)
    inputs = [x.requires_grad_() for x in (scale * logits, *rest)]
    readings, _ = readings_of(*inputs, states=2, symbols=3, window=window)
    expected = pushdown_stack(*inputs, states=2, symbols=3)
    torch.testing.assert_close(readings, expected.flatten(2), rtol=1e-9, atol=1e-12)
    weights = torch.randn(readings.shape, generator=generator, dtype=torch.float64)
    ours = torch.autograd.grad((readings * weights).sum(), inputs)
    theirs = torch.autograd.grad((expected.flatten(2) * weights).sum(), inputs)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_great_logits_with_a_limit_leave_numbers(generator):
    """What is read is a mean of what was pushed, or nothing."""
    logits, pushed, bottom = draw(generator, 2, 61, 1, 2, 3)
    readings, state = readings_of(1e4 * logits, torch.ones_like(pushed), bottom, states=2, symbols=3, window=7)
    assert all(x.isfinite().all() for x in state)
    total = readings[:, 7:].sum(2)
    torch.testing.assert_close(total, total.round(), rtol=0, atol=1e-12)


def test_gradients_with_a_limit(generator):
    inputs = [x.requires_grad_() for x in draw(generator, 2, 5, 2, 2, 2)]
    assert torch.autograd.gradcheck(lambda *x: readings_of(*x, states=2, symbols=2, window=3)[0], inputs)


def test_a_long_text(generator):
    """After 1,000 steps the state is of the size of the window, and the readings are those of a late start.

    What was pushed 40 steps ago and more is forgotten; how likely the states and symbols before were, nearly so.
    """
    sizes = dict(states=2, symbols=2, window=8)
    with torch.no_grad():
        logits, pushed, bottom = draw(generator, 2, 1001, 3, 2, 2)
        readings, state = readings_of(logits, 5 * pushed, bottom, **sizes)
        late, _ = readings_of(logits[:, -200:], 5 * pushed[:, -200:], bottom, **sizes)
    assert state.inner.shape == (2, 8, 8, 4, 4) and state.vectors.shape == (2, 8, 3)
    assert readings.isfinite().all()
    torch.testing.assert_close(readings[:, -20:], late[:, -20:], rtol=1e-8, atol=1e-8)


def test_shapes_that_do_not_fit(generator):
    logits, pushed, bottom = draw(generator, 2, 1, 3, 2, 2)
    state = limited_initial(bottom, 2, states=2, symbols=2)
    with pytest.raises(ValueError, match=r"expected logits 2 40 and pushed \(2, 3\), got \(2, 39\) and \(2, 3\)"):
        limited_step(state, logits[:, 0, 1:], pushed[:, 0], states=2, symbols=2, window=3)
    with pytest.raises(ValueError, match=r"got \(2, 40\) and \(2, 2\)"):
        limited_step(state, logits[:, 0], pushed[:, 0, 1:], states=2, symbols=2, window=3)
