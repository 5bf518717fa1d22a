"""The stratification stack: its definition, a list, resumption, gradients, long sequences."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.stratification import empty_stack, stratification_stack
from seqstruct.ops.stratification.naive import naive_stratification_stack


def draw(generator, B, T, m, requires_grad=False):
    push, pop = (2 * torch.rand(B, T, generator=generator, dtype=torch.float64) for _ in range(2))
    pushed = torch.randn(B, T, m, generator=generator, dtype=torch.float64)
    return [x.requires_grad_(requires_grad) for x in (push, pop, pushed)]


def by_definition(push, pop, pushed):
    return naive_stratification_stack(push, pop, pushed, pushed[:, :0], push[:, :0])


@pytest.mark.parametrize("T", [1, 2, 7, 103])
def test_definition_values_and_gradients(generator, T):
    inputs = draw(generator, 3, T, 5, requires_grad=True)
    readings, stack = stratification_stack(*inputs, empty_stack(inputs[2], 3))
    expected, vectors, strengths = by_definition(*inputs)
    torch.testing.assert_close(readings, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(stack.strengths, strengths, rtol=0, atol=1e-12)
    torch.testing.assert_close(stack.vectors, vectors, rtol=0, atol=0)
    weights = torch.randn(readings.shape, generator=generator, dtype=torch.float64)
    after = torch.randn(strengths.shape, generator=generator, dtype=torch.float64)
    ours = torch.autograd.grad((readings * weights).sum() + (stack.strengths * after).sum(), inputs)
    theirs = torch.autograd.grad((expected * weights).sum() + (strengths * after).sum(), inputs)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


def test_an_example_by_hand():
    """The stack of figure 1 of the paper: push .8 of v1, pop .1 and push .5 of v2, pop .9 and push .9 of v3."""
    push, pop = torch.tensor([[[0.8, 0.5, 0.9]], [[0.0, 0.1, 0.9]]], dtype=torch.float64)
    readings, stack = stratification_stack(push, pop, torch.eye(3).double()[None], empty_stack(push.new_zeros(3), 1))
    left = torch.tensor([[0.3, 0.0, 0.9]], dtype=torch.float64)
    torch.testing.assert_close(stack.strengths, left, rtol=0, atol=1e-12)
    expected = torch.tensor([[0.8, 0, 0], [0.5, 0.5, 0], [0.1, 0, 0.9]], dtype=torch.float64)
    torch.testing.assert_close(readings[0], expected, rtol=0, atol=1e-12)


def test_whole_strengths_are_a_list(generator):
    T = 13
    push, pop = (torch.randint(2, (1, T), generator=generator).double() for _ in range(2))
    pushed = torch.randn(1, T, 2, generator=generator, dtype=torch.float64)
    readings, _ = stratification_stack(push, pop, pushed, empty_stack(pushed, 1))
    stack = []
    for t in range(T):
        if pop[0, t] and stack:
            stack.pop()
        if push[0, t]:
            stack.append(pushed[0, t])
        torch.testing.assert_close(readings[0, t], stack[-1] if stack else torch.zeros(2).double(), rtol=0, atol=0)


def test_second_derivatives(generator):
    push, pop, pushed = draw(generator, 2, 5, 3, requires_grad=True)

    def readings(push, pop, pushed):
        return stratification_stack(push, pop, pushed, empty_stack(pushed, 2))[0]

    assert torch.autograd.gradcheck(readings, (push, pop, pushed))
    assert torch.autograd.gradgradcheck(readings, (push, pop, pushed))


def test_many_pops_lose_no_digits(generator):
    """Strengths in float32, of which 1,000 steps pop a sum that has no digits left for what the last ten push."""
    push, pop = (torch.rand(1, 1010, generator=generator) for _ in range(2))
    pop[:, :1000] *= 1e6
    push[:, 1000:], pop[:, 1000:] = push[:, 1000:] / 5, pop[:, 1000:] / 20
    pushed = torch.randn(1, 1010, 2, generator=generator, dtype=torch.float64)
    readings, stack = stratification_stack(push, pop, pushed, empty_stack(pushed, 1))
    expected, _, strengths = by_definition(push.double(), pop.double(), pushed)
    assert 0.3 < float(strengths.sum()) < 3
    torch.testing.assert_close(readings, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(stack.strengths, strengths, rtol=0, atol=1e-6)


def test_shapes_that_do_not_fit():
    push, pushed = torch.ones(2, 3), torch.ones(2, 3, 4)
    with pytest.raises(ValueError, match=r"expected push and pop B T .* got \(2, 2\), \(2, 3\) and \(2, 3, 4\)"):
        stratification_stack(push[:, 1:], push, pushed, empty_stack(pushed, 2))
    with pytest.raises(ValueError, match=r"to fit the stack's vectors \(2, 0, 5\)"):
        stratification_stack(push, push, pushed, empty_stack(torch.ones(5), 2))
