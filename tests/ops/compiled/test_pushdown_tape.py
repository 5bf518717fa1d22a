"""The compiled pushdown automaton of a recurrent network against that in PyTorch."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from seqstruct.ops.cells.stack_lstm import stack_lstm
from seqstruct.ops.pushdown import PushdownTape, transition_count
from seqstruct.ops.pushdown.compiled import CompiledPushdownTape
from tests.ops.cells.test_stack_lstm import lose_all_weight
from tests.ops.pushdown.test_naive import SIZES, check_tape

HIDDEN = 3


def network(generator, B, T, states, symbols, size, sigmoid=True, dtype=torch.float64, spread=0.5):
    """A stack LSTM's inputs, and what computes its hidden states and gradients with a kind of tape."""
    reading, controls = states * symbols * size, transition_count(states, symbols) + size
    shapes = [(T, B, 4 * HIDDEN), (B, HIDDEN), (B, HIDDEN), (reading + HIDDEN, 4 * HIDDEN), (HIDDEN, controls)]
    shapes += [(controls,), (B, size)]
    inputs = [spread * torch.randn(*x, generator=generator, dtype=torch.float64) for x in shapes]
    inputs = [x.to(dtype).requires_grad_() for x in inputs]

    def run(kind):
        tape = partial(kind, states=states, symbols=symbols, sigmoid=sigmoid)
        hiddens, trusted = stack_lstm(*inputs, tape)
        assert trusted.all()
        return [hiddens, *torch.autograd.grad(hiddens.square().sum(), inputs, allow_unused=T == 1)]

    return inputs, run


@pytest.mark.parametrize(("T", "Q", "S"), SIZES)
def test_equal_to_the_recurrence(T, Q, S, compiled, generator):
    compiled(True)
    check_tape(CompiledPushdownTape, generator, T, Q, S)


@pytest.mark.parametrize("sigmoid", [True, False])
@pytest.mark.parametrize(("states", "symbols", "size"), [(1, 1, 1), (2, 3, 5), (3, 2, 7), (4, 1, 9), (5, 2, 2)])
@pytest.mark.parametrize(("batch", "length"), [(1, 1), (3, 2), (2, 3), (3, 13), (1, 40)])
def test_equal_to_pytorch(batch, length, states, symbols, size, sigmoid, compiled, generator):
    compiled(True)
    _, run = network(generator, batch, length, states, symbols, size, sigmoid, spread=1.5)
    found, expected = run(CompiledPushdownTape), run(PushdownTape)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def test_single_precision(compiled, generator):
    compiled(True)
    _, run = network(generator, 3, 13, 2, 3, 5, dtype=torch.float32)
    for ours, theirs in zip(run(CompiledPushdownTape), run(PushdownTape), strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("large", [89.0, 1000.0])
def test_vectors_beyond_single_precision(large, compiled, generator):
    compiled(True)
    inputs, run = network(generator, 2, 9, 2, 2, 3, sigmoid=False, dtype=torch.float32)
    inputs[5].data[-1] = large
    for ours, theirs in zip(run(CompiledPushdownTape), run(PushdownTape), strict=True):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_second_backward_pass_is_the_first_one_again(compiled, generator):
    compiled(True)
    inputs, _ = network(generator, 2, 9, 2, 2, 3)
    hiddens, _ = stack_lstm(*inputs, partial(CompiledPushdownTape, states=2, symbols=2, sigmoid=True))
    first, second = (torch.autograd.grad(hiddens.square().sum(), inputs, retain_graph=True) for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))


def test_threads_share_the_batch(shared, generator):
    _, run = network(generator, 5, 40, 3, 3, 5)
    torch.testing.assert_close(*shared(lambda: run(CompiledPushdownTape)), rtol=0, atol=0)


def test_rows_out_of_range_are_told(compiled, generator):
    compiled(True)
    assert not lose_all_weight(generator, CompiledPushdownTape).any()
    bottom, reading = torch.rand(2, 3, generator=generator), torch.empty(2, 6)
    tape = CompiledPushdownTape(bottom, 4, states=2, symbols=1, sigmoid=True)
    for _ in range(4):
        controls = torch.zeros(2, 12 + 3)
        controls[1] = torch.nan
        tape.step(controls, reading)
    assert tape.in_range().tolist() == [True, False]
