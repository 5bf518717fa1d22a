"""Span representations: algorithm 3 equals the recurrence run over each span."""

import pytest
import torch

from seqstruct.ops.automata import backward_spans, forward_spans, span_mask

B, N, D = 3, 13, 5


def directly(gate_logits, candidates, max_length, backward):
    """Spans read word by word, one more word at a time."""
    gates = gate_logits.sigmoid()
    updates = (1 - gates) * candidates
    B, N, D = gates.shape
    out = gates.new_zeros(B, N, max_length, D)
    shorter = gates.new_zeros(B, N, D)
    for length in range(min(max_length, N)):
        ends = slice(length, N)
        if backward:  # [j - l, j] reads word j - l last
            shorter = gates[:, : N - length] * shorter[:, -(N - length) :] + updates[:, : N - length]
        else:  # [j - l, j] reads word j last
            shorter = gates[:, ends] * shorter[:, : N - length] + updates[:, ends]
        out[:, ends, length] = shorter
    return out


@pytest.fixture
def inputs(generator):
    logits = 2 * torch.randn(B, N, D, dtype=torch.double, generator=generator)
    return logits, torch.randn(B, N, D, dtype=torch.double, generator=generator)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("max_length", [1, 4, N, N + 3])
@pytest.mark.parametrize("first", [0, 2, 6, N])
def test_equals_the_recurrence_over_each_span(inputs, max_length, first, backward):
    op = backward_spans if backward else forward_spans
    expected = directly(*inputs, max_length, backward)[:, first:]
    torch.testing.assert_close(op(*inputs, max_length, first), expected, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("backward", [False, True])
def test_gradients_equal_the_recurrences(inputs, generator, backward):
    op = backward_spans if backward else forward_spans
    weights = torch.randn(B, N, 4, D, dtype=torch.double, generator=generator)
    found = []
    for f in (op, lambda *x: directly(*x, backward)):
        leaves = [x.clone().requires_grad_() for x in inputs]
        (f(*leaves, 4) * weights).sum().backward()
        found.append([x.grad for x in leaves])
    torch.testing.assert_close(*found, atol=1e-11, rtol=1e-9)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("low, high", [(-120.0, -60.0), (8.0, 14.0), (-90.0, 14.0), (-1e4, 5.0)])
def test_long_spans_and_extreme_gates_in_single_precision(generator, low, high, backward):
    N = 211
    logits = low + (high - low) * torch.rand(2, N, 3, dtype=torch.double, generator=generator)
    candidates = torch.randn(2, N, 3, dtype=torch.double, generator=generator).tanh()
    op = backward_spans if backward else forward_spans
    expected = directly(logits.float().double(), candidates.float().double(), N, backward)
    leaves = [logits.float().requires_grad_(), candidates.float().requires_grad_()]
    found = op(*leaves, N)
    torch.testing.assert_close(found.double(), expected, atol=3e-6, rtol=0)
    found.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in leaves)


def test_a_shut_gate_before_a_span_takes_no_digits_from_it():
    logits = torch.tensor([-1e30, -1e30, 0.3, -0.2]).view(1, 4, 1)
    candidates = torch.tensor([0.5, -0.9, 0.8, 0.1]).view(1, 4, 1)
    expected = directly(logits.double(), candidates.double(), 2, False)
    torch.testing.assert_close(forward_spans(logits, candidates, 2).double(), expected, atol=1e-7, rtol=0)


def test_words_outside_a_span_do_not_matter(inputs, generator):
    logits, candidates = inputs
    changed = candidates.clone()
    changed[:, 7:] = torch.randn(B, N - 7, D, dtype=torch.double, generator=generator)
    for op in (forward_spans, backward_spans):
        a, b = op(logits, candidates, 5), op(logits, changed, 5)
        torch.testing.assert_close(a[:, :7], b[:, :7], atol=1e-13, rtol=0)


def test_the_mask_names_spans_without_padding():
    padding = torch.tensor([[True, True, False, False, False], [False] * 5])
    mask = span_mask(padding, 3, 1)
    assert mask.tolist() == [
        [[False] * 3, [True, False, False], [True, True, False], [True] * 3],
        [[True, True, False], [True] * 3, [True] * 3, [True] * 3],
    ]


def test_an_empty_sequence_and_bad_arguments(inputs):
    logits, candidates = inputs
    assert forward_spans(logits[:, :0], candidates[:, :0], 4).shape == (B, 0, 4, D)
    with pytest.raises(ValueError, match="1 or more, got 0"):
        forward_spans(logits, candidates, 0)
    with pytest.raises(ValueError, match="one shape"):
        backward_spans(logits, candidates[:, 1:], 2)
    with pytest.raises(ValueError, match="got 14"):
        forward_spans(logits, candidates, 2, N + 1)
