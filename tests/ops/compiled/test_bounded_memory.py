"""The compiled chunks of attention to a memory of slots against those in PyTorch."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from seqstruct.ops.memory.bounded_memory import LOWEST, BoundedMemory, causal_bounded_memory, empty_bounded_memory, step
from seqstruct.ops.memory.compiled_bounded_memory import SPAN

B, H = 2, 2
SHAPES = [(0, 5, 3, 4), (1, 5, 3, 4), (33, 13, 20, 7), (64, 64, 32, 64), (2 * SPAN + 13, 16, 5, 5)]  # T D N E


def inputs(shape: tuple[int, ...], means: bool, dtype: torch.dtype, generator, spread: float = 2.0) -> list[Tensor]:
    """Queries, keys, values, controls of which a fifth writes nothing, and a memory with an empty slot."""
    T, D, N, E = shape

    def draw(*size: int) -> Tensor:
        return torch.randn(B, H, *size, generator=generator, dtype=torch.float64)

    nothing = torch.rand(B, H, T, N, generator=generator) < 0.2
    control = (spread * draw(T, N)).masked_fill(nothing, -math.inf if means else 0.0)
    memory = [draw(N, D), draw(N, E), draw(N) if means else torch.zeros(B, H, N)]
    memory = [x.masked_fill(torch.arange(N).view(N, *[1] * (x.dim() - 3)) == 1, 0.0) for x in memory]
    memory[2][:, :, 1] = LOWEST
    return [x.to(dtype).requires_grad_() for x in (draw(T, D), draw(T, D), draw(T, E), control, *memory)]


def attend(given: list[Tensor], means: bool, empty: bool) -> tuple[Tensor, ...]:
    """Output and last memory."""
    query, key, value, control, *memory = given
    output, end = causal_bounded_memory(BoundedMemory(*memory), query, key, value, control, means, empty)
    return output, *end


def with_gradients(given: list[Tensor], means: bool, empty: bool) -> list[Tensor]:
    results = attend(given, means, empty)
    output, key, value, log_total = results
    loss = sum(
        (x * torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x)).sum()
        for x in (output, key, value, log_total.masked_fill(log_total < LOWEST / 2, 0.0))
    )
    return [*results, *torch.autograd.grad(loss, given, allow_unused=True, materialize_grads=True)]


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("means", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients_are_those_of_pytorch(shape, means, empty, both, generator):
    given = inputs(shape, means, torch.float64, generator)
    torch.testing.assert_close(*both(lambda: with_gradients(given, means, empty)), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("means", [False, True])
def test_from_an_empty_memory_into_which_little_is_written(means, empty, both, generator):
    """Some slots stay empty for long, and one head reads nothing at first."""
    given = inputs((70, 5, 7, 3), means, torch.float64, generator)[:4]
    first = torch.randint(0, 90, (B, H, 1, 7), generator=generator)
    early = torch.arange(70).unsqueeze(-1) < first
    with torch.no_grad():
        given[3].masked_fill_(early, -math.inf if means else 0.0)
    memory = empty_bounded_memory(B, H, 7, 5, 3, given[0])

    def run() -> list[Tensor]:
        output, end = causal_bounded_memory(memory, *given, means, empty)
        return [output, *end, *torch.autograd.grad(output.square().sum() + end.value.sum(), given)]

    torch.testing.assert_close(*both(run), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("spread", [30.0, 200.0, 5000.0])
def test_controls_that_rise_steeply(spread, both, generator):
    given = inputs((SPAN + 21, 5, 3, 4), True, torch.float64, generator, spread)
    torch.testing.assert_close(*both(lambda: with_gradients(given, True, False)), rtol=1e-10, atol=1e-9)
    single = [x.detach().float().requires_grad_() for x in given]
    assert all(x.isfinite().all() for x in with_gradients(single, True, False))


@pytest.mark.parametrize("means", [False, True])
def test_in_single_precision(means, compiled, generator):
    given = inputs((70, 13, 20, 7), means, torch.float32, generator, 0.5)
    exact = [x.detach().double().requires_grad_() for x in given]
    compiled(True)
    for ours, theirs in zip(with_gradients(given, means, False), with_gradients(exact, means, False), strict=True):
        assert (ours - theirs).abs().max() <= 2e-5 * theirs.abs().max()


def test_controls_in_double_precision_for_a_memory_in_single(both, generator):
    given = inputs((70, 13, 20, 7), True, torch.float32, generator)
    given[3] = (given[3].detach().double() + torch.arange(70).view(-1, 1) * 1e6).requires_grad_()
    found, expected = both(lambda: with_gradients(given, True, False))
    assert [x.dtype for x in found] == [x.dtype for x in expected]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("means", [False, True])
def test_gradients_by_differences(means, compiled, generator):
    compiled(True)
    given = inputs((35, 3, 4, 2), means, torch.float64, generator)[:4]
    memory = empty_bounded_memory(B, H, 4, 3, 2, given[0])
    nothing = torch.rand(B, H, 1, 4, generator=generator) < 0.3  # a slot is written to always or never

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        control = tensors[3].masked_fill(nothing, -math.inf if means else 0.0)
        output, end = causal_bounded_memory(memory, *tensors[:3], control, means)
        return output, end.key, end.value, end.log_total.masked_fill(nothing.squeeze(2), 0.0)

    with torch.no_grad():
        given[3].copy_(torch.randn(given[3].shape, generator=generator, dtype=torch.float64) + 0.01)
    assert torch.autograd.gradcheck(run, given, fast_mode=True)


def test_threads_share_the_heads(shared, generator):
    given = inputs((70, 13, 20, 7), True, torch.float64, generator)
    torch.testing.assert_close(*shared(lambda: with_gradients(given, True, False)), rtol=0, atol=0)


def test_without_gradients_nothing_is_kept(both, generator):
    given = [x.detach() for x in inputs((70, 13, 20, 7), True, torch.float64, generator)]
    torch.testing.assert_close(*both(lambda: attend(given, True, False)[0]), rtol=1e-10, atol=1e-10)


def test_controls_that_need_no_gradient(both, generator):
    given = inputs((70, 13, 20, 7), True, torch.float64, generator)
    given[3].requires_grad_(False)
    leaves = [x for x in given if x.requires_grad]
    found = both(lambda: torch.autograd.grad(attend(given, True, False)[0].square().sum(), leaves))
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("order", [None, [1, 0], [1, 1, 0], [1]])
@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("means", [False, True])
@pytest.mark.parametrize("shape", [(1, 5, 3, 4), (1, 64, 32, 64), (1, 13, 20, 71)], ids=str)
def test_a_step_is_that_of_pytorch(shape, means, empty, order, both, generator):
    *given, key_memory, value_memory, log_total = (x.detach() for x in inputs(shape, means, torch.float64, generator))
    order = None if order is None else torch.tensor(order, dtype=torch.int32)
    new = [x if order is None else x[order] for x in given]

    def run() -> list[Tensor]:
        state = BoundedMemory(key_memory.clone(), value_memory.clone(), log_total.clone())
        output, after = step(state, order, *new, means, empty)
        return [output, *after]

    torch.testing.assert_close(*both(run), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("means", [False, True])
def test_a_step_into_empty_slots_and_of_controls_in_double_precision(means, both, generator):
    query, key, value, control, *_ = (x.detach() for x in inputs((1, 5, 3, 4), means, torch.float32, generator))
    control[0] = -math.inf if means else 0.0

    def run() -> list[Tensor]:
        state = empty_bounded_memory(B, H, 3, 5, 4, query)
        output, after = step(state, None, query, key, value, control.double(), means)
        return [output, *after]

    found, expected = both(run)
    assert not found[0][0].any()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_a_step_with_gradients_is_left_to_pytorch(compiled, generator):
    compiled(True)
    query, key, value, control, *memory = inputs((1, 5, 3, 4), True, torch.float64, generator)
    before = memory[0].detach().clone()
    step(BoundedMemory(*memory), None, query, key, value, control, True)[0].sum().backward()
    assert torch.equal(memory[0], before)
    assert key.grad.abs().sum() > 0
