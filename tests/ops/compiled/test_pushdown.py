"""The compiled sums over all runs of a pushdown automaton against those in PyTorch."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.pushdown import pushdown_stack, transition_count
from seqstruct.ops.pushdown.compiled import compiled_runs
from seqstruct.ops.pushdown.layout import arrange, scale
from seqstruct.ops.pushdown.naive import naive_readings
from seqstruct.ops.pushdown.scaled import ScaledRuns
from tests.ops.pushdown.test_naive import SIZES as RECURRENCE
from tests.ops.pushdown.test_step import by_steps

# B T Q S m: block limits, one column or row of vectors, more states than fit a block
SIZES = [
    (2, 1, 2, 3, 5), (2, 2, 1, 1, 1), (1, 3, 2, 2, 2), (3, 13, 2, 3, 5), (2, 33, 3, 3, 7), (1, 80, 2, 3, 5),
    (2, 40, 1, 3, 9), (1, 24, 5, 2, 3), (1, 19, 7, 2, 2), (1, 20, 8, 1, 2), (1, 7, 9, 2, 17), (1, 9, 17, 1, 3),
]


def draw(generator, B, T, Q, S, m, dtype=torch.float64):
    """Log-weights, pushed vectors and the bottom's."""

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    return [x.requires_grad_() for x in (normal(B, T, transition_count(Q, S)), normal(B, T, m), normal(m))]


def with_gradients(inputs, Q, S):
    readings = pushdown_stack(*inputs, states=Q, symbols=S)
    weights = torch.linspace(-1, 1, readings.numel(), dtype=readings.dtype).view_as(readings)
    return [readings, *torch.autograd.grad((readings * weights).sum(), inputs)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_readings_and_gradients(both, generator, sizes):
    inputs = draw(generator, *sizes)
    torch.testing.assert_close(*both(lambda: with_gradients(inputs, *sizes[2:4])), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("T", "Q", "S"), RECURRENCE)
def test_equal_to_the_recurrence(T, Q, S, compiled, generator):
    """All steps at once, and one by one without gradients."""
    compiled(True)
    inputs = draw(generator, 2, T, Q, S, 2)
    readings = naive_readings(*inputs, states=Q, symbols=S)
    weights = torch.linspace(-1, 1, readings.numel(), dtype=readings.dtype).view_as(readings)
    expected = [readings, *torch.autograd.grad((readings * weights).sum(), inputs)]
    torch.testing.assert_close(with_gradients(inputs, Q, S), expected, rtol=0, atol=1e-11)
    with torch.no_grad():
        torch.testing.assert_close(by_steps(*inputs, states=Q, symbols=S), readings, rtol=0, atol=1e-12)


def test_single_precision(compiled, generator):
    """Tables are double whatever the inputs."""
    compiled(True)
    inputs = draw(generator, 2, 40, 2, 3, 5, dtype=torch.float32)
    found = with_gradients(inputs, 2, 3)
    expected = with_gradients([x.detach().double().requires_grad_() for x in inputs], 2, 3)
    assert all(x.dtype == torch.float32 for x in found)
    torch.testing.assert_close(found, [x.float() for x in expected], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("T", [1, 2, 5, 13])
def test_gradcheck(compiled, generator, T):
    compiled(True)
    inputs = draw(generator, 2, T, 2, 2, 2)
    assert torch.autograd.gradcheck(
        lambda *inputs: pushdown_stack(*inputs, states=2, symbols=2), inputs, fast_mode=T > 5
    )


def extremes(generator, name):
    """Log-weights B T A of two states and three symbols: row 0 extreme, row 1 usual."""
    logits, *_ = draw(generator, 2, 37, 2, 3, 5)
    logits = logits.detach()
    if name == "blocked":
        logits[0].masked_fill_(torch.rand(logits[0].shape, generator=generator) < 0.4, -torch.inf)
    elif name == "no run left":
        logits[0, 20] = -torch.inf
    else:
        logits[0] += float(name) * logits[0].sign()
    return logits.requires_grad_()


@pytest.mark.parametrize("name", ["blocked", "no run left", "50", "100"])
def test_extreme_weights(both, generator, name):
    _, *vectors = draw(generator, 2, 37, 2, 3, 5)
    inputs = [extremes(generator, name), *vectors]
    torch.testing.assert_close(*both(lambda: with_gradients(inputs, 2, 3)), rtol=0, atol=1e-10)


def test_all_sums_and_their_gradients(compiled, generator):
    """F itself, of all times and for any upstream gradient, the weights' and each row's bottom."""
    compiled(True)
    B, T, Q, S, m = 2, 21, 3, 2, 4
    logits, pushed, bottom = (x.detach() for x in draw(generator, B, T, Q, S, m))
    weights = arrange((logits - scale(logits, Q, S)).exp(), Q, S)
    inputs = [*weights, pushed.transpose(0, 1), bottom.expand(B, m) * torch.tensor([[1.0], [2.0]])]
    inputs = [x.detach().requires_grad_() for x in inputs]
    found, expected = (runs(*inputs) for runs in (compiled_runs, ScaledRuns.apply))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    upstream = torch.randn(found.shape, generator=generator, dtype=found.dtype)
    gradients = [torch.autograd.grad(ending, inputs, upstream) for ending in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-12)


def test_every_number_that_is_read_was_written(compiled, generator, monkeypatch):
    """New tensors are filled with NaN."""
    compiled(True)
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    inputs = draw(generator, 3, 27, 2, 3, 5)
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(1).isnan()
        found = with_gradients(inputs, 2, 3)
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(x.isfinite().all() for x in found)


def test_threads_share_the_rows(shared, generator):
    inputs = draw(generator, 5, 21, 2, 3, 5)
    torch.testing.assert_close(*shared(lambda: with_gradients(inputs, 2, 3)), rtol=0, atol=1e-14)


def test_a_batch_of_no_rows(compiled, generator):
    compiled(True)
    inputs = draw(generator, 0, 5, 2, 3, 5)
    found = with_gradients(inputs, 2, 3)
    assert found[0].shape == (0, 5, 30) and not found[3].any()
