"""The superposition stack: brute force, reference numbers, step form, resumption, gradients."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from seqstruct.benchmarks.timing import Audit
from seqstruct.ops.superposition import bounded_stacks, superposition_stack, superposition_stack_step
from seqstruct.ops.superposition.naive import naive_stack

GOLDEN = ["01", "02", "03", "04_pm50", "05_n60", "06_n1", "07_n16_m32", "08_hard"]


def draw(generator, B, T, m, requires_grad=False, dtype=torch.float64):
    actions = torch.rand(B, T, 3, generator=generator, dtype=dtype)
    pushed = torch.randn(B, T, m, generator=generator, dtype=dtype)
    return [x.requires_grad_(requires_grad) for x in (actions / actions.sum(-1, keepdim=True), pushed)]


def by_steps(actions, pushed, stack=None):
    return naive_stack(actions, pushed, pushed[:, :0] if stack is None else stack)


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("need_final", [True, False])
def test_reference_numbers(golden, name, need_final):
    arrays = np.load(golden("stack", f"sup_{name}.npz"))
    case = {key: torch.from_numpy(array) for key, array in arrays.items() if array.dtype.kind == "f"}
    actions, pushed = case["actions"].clone().requires_grad_(), case["pushed"].clone().requires_grad_()
    readings, final = superposition_stack(actions, pushed, need_final=need_final)
    torch.testing.assert_close(readings, case["readings"], rtol=0, atol=1e-12)
    if need_final:
        torch.testing.assert_close(final, case["final_stack"], rtol=0, atol=1e-12)
    else:
        assert final is None
    (readings * case["weights"]).sum().backward()
    torch.testing.assert_close(actions.grad, case["grad_actions"], rtol=0, atol=1e-11)
    torch.testing.assert_close(pushed.grad, case["grad_pushed"], rtol=0, atol=1e-11)


@pytest.mark.parametrize("T", [1, 2, 5])
def test_sum_over_all_action_sequences(generator, T):
    actions, pushed = draw(generator, 2, T, 3)
    expected = torch.zeros_like(pushed)
    for b, t in product(range(2), range(1, T + 1)):
        for sequence in product(range(3), repeat=t):
            weight, stack = 1.0, []
            for step, action in enumerate(sequence):
                weight = weight * actions[b, step, action]
                if action == 0:
                    stack.append(pushed[b, step])
                elif action == 1 and stack:
                    stack.pop()
            if stack:
                expected[b, t - 1] += weight * stack[-1]
    torch.testing.assert_close(superposition_stack(actions, pushed)[0], expected, rtol=0, atol=1e-14)


def test_one_hot_actions_are_a_list(generator):
    T = 13
    chosen = torch.randint(3, (T,), generator=generator)
    pushed = torch.randn(1, T, 2, generator=generator)
    actions = torch.nn.functional.one_hot(chosen, 3).float().unsqueeze(0)
    readings, final = superposition_stack(actions, pushed)
    stack = []
    for t, action in enumerate(chosen.tolist()):
        if action == 0:
            stack.append(pushed[0, t])
        elif action == 1 and stack:
            stack.pop()
        assert torch.equal(readings[0, t], stack[-1] if stack else torch.zeros(2))
    assert torch.equal(final[0, : len(stack)], torch.stack(stack[::-1]) if stack else final[0, :0])
    assert not final[0, len(stack) :].any()


@pytest.mark.parametrize("T", [1, 2, 7])
@pytest.mark.parametrize("height", [0, 1, 4])
@pytest.mark.parametrize("need_final", [True, False])
def test_steps_equal_the_parallel_form(generator, T, height, need_final):
    inputs = draw(generator, 3, T, 5, requires_grad=True)
    stack = torch.randn(3, height, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(3, T, 5, generator=generator, dtype=torch.float64)
    readings, final = superposition_stack(*inputs, stack, need_final=need_final)
    expected, stepped = by_steps(*inputs, stack)
    torch.testing.assert_close(readings, expected, rtol=0, atol=1e-13)
    if need_final:
        torch.testing.assert_close(final, stepped, rtol=0, atol=1e-13)
    loss, reference = (readings * weights).sum(), (expected * weights).sum()
    if need_final:
        loss, reference = loss + (final**2).sum(), reference + (stepped**2).sum()
    grads, truth = (torch.autograd.grad(x, (*inputs, stack)) for x in (loss, reference))
    torch.testing.assert_close(grads, truth, rtol=0, atol=1e-12)


@pytest.mark.parametrize("height", [0, 2])
@pytest.mark.parametrize("need_final", [True, False])
def test_gradcheck(generator, height, need_final):
    inputs = draw(generator, 2, 5, 2, requires_grad=True)
    stack = torch.randn(2, height, 2, generator=generator, dtype=torch.float64, requires_grad=True)

    def run(*inputs):
        readings, final = superposition_stack(*inputs, need_final=need_final)
        return (readings, final) if need_final else readings

    assert torch.autograd.gradcheck(run, (*inputs, stack))


@pytest.mark.parametrize("need_final", [True, False])
@pytest.mark.parametrize("height", [0, 1, 4, 17])
@pytest.mark.parametrize("T", [0, 1, 2, 5, 8, 13])
def test_without_gradients_the_numbers_are_the_same(generator, T, height, need_final):
    actions, pushed = draw(generator, 3, T, 7, requires_grad=True)
    stack = torch.randn(3, height, 7, generator=generator, dtype=torch.float64)
    expected = superposition_stack(actions, pushed, stack, need_final=need_final)
    with torch.no_grad():
        found = superposition_stack(actions, pushed, stack, need_final=need_final)
    assert torch.equal(found[0], expected[0]) and not found[0].requires_grad
    assert found[1] is None if not need_final else torch.equal(found[1], expected[1])


def test_without_gradients_memory_grows_with_the_length(generator):
    peaks = []
    for T in (40, 80):
        actions, pushed = draw(generator, 3, T, 7)
        with Audit() as found:
            superposition_stack(actions, pushed)
        peaks.append(found.peak)
    assert peaks[1] < 2.1 * peaks[0]


def test_no_steps():
    readings, final = superposition_stack(torch.zeros(5, 0, 3), torch.zeros(5, 0, 7))
    assert readings.shape == (5, 0, 7)
    assert torch.equal(final, torch.zeros(5, 1, 7))
    stack = torch.arange(10.0).view(1, 2, 5)
    assert torch.equal(superposition_stack(torch.zeros(1, 0, 3), torch.zeros(1, 0, 5), stack)[1], stack)


def test_low_precision_computes_in_float32(generator):
    actions, pushed = draw(generator, 2, 40, 3, dtype=torch.float32)
    readings, final = superposition_stack(actions.bfloat16(), pushed.bfloat16())
    assert readings.dtype == final.dtype == torch.bfloat16
    expected, _ = superposition_stack(actions.bfloat16().float(), pushed.bfloat16().float())
    torch.testing.assert_close(readings.float(), expected, rtol=1e-2, atol=1e-3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside, _ = superposition_stack(actions, pushed)
    assert torch.equal(inside, superposition_stack(actions, pushed)[0])


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="expected actions B T 3"):
        superposition_stack(torch.zeros(2, 5, 4), torch.zeros(2, 5, 3))
    with pytest.raises(ValueError, match="expected a stack 2 h 3"):
        superposition_stack(torch.zeros(2, 5, 3), torch.zeros(2, 5, 3), torch.zeros(2, 1, 4))
    with pytest.raises(ValueError, match="expected actions B 3"):
        superposition_stack_step(torch.zeros(2, 1, 3), torch.zeros(2, 2), torch.zeros(2, 3))


@pytest.mark.parametrize("T, height", [(0, 3), (1, 1), (5, 7), (13, 4)])
def test_bounded_stacks(generator, T, height):
    """Until the first element can fall off they are the whole stack; then each is a step of the one before, cut."""
    actions, pushed = draw(generator, 2, T, 3)
    stacks = bounded_stacks(actions, pushed, pushed.new_zeros(2, height, 3))
    assert stacks.shape == (2, T, height, 3)
    before = pushed.new_zeros(2, height, 3)
    for t in range(T):
        if t < height:
            whole = superposition_stack(actions[:, : t + 1], pushed[:, : t + 1])[1]
            torch.testing.assert_close(stacks[:, t, : t + 1], whole, rtol=0, atol=1e-14)
            assert not stacks[:, t, t + 1 :].any()
        expected = superposition_stack_step(before, actions[:, t], pushed[:, t])[:, :height]
        torch.testing.assert_close(stacks[:, t], expected, rtol=0, atol=0)
        before = stacks[:, t]
    with pytest.raises(ValueError, match="expected a stack 2 h 3"):
        bounded_stacks(actions, pushed, pushed.new_zeros(2, height, 2))
