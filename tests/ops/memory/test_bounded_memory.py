"""Bounded memories against the reference numbers, and their forms against each other."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from seqstruct.ops.memory.bounded_memory import (
    CHUNK,
    BoundedMemory,
    anything_written,
    causal_bounded_memory,
    empty_bounded_memory,
    in_decaying_slots,
    read,
    write,
)
from seqstruct.ops.memory.naive import naive_bounded_memory
from tests.ops.memory.test_linear_attention import load

EXACT = {"rtol": 0, "atol": 1e-9}
MLP = ["mlp_causal", "mlp_causal_n40", "mlp_cross", "mlp_noncausal_lengths"]
SUMS = [
    f"{kind}_{mode}"
    for kind in ("linformer", "random", "local_to_global", "mean_pool", "clustering")
    for mode in ("causal", "noncausal")
]


def attend(query: Tensor, key: Tensor, value: Tensor, control: Tensor, causal: bool, means: bool, empty: bool = False):
    """Output and last memory."""
    state = empty_bounded_memory(*key.shape[:2], control.size(-1), key.size(-1), value.size(-1), key)
    if causal:
        return causal_bounded_memory(state, query, key, value, control, means, empty)
    state = write(state, key, value, control, means)
    return read(state, query, empty), state


@pytest.mark.parametrize("name", MLP)
def test_learned_control_is_the_reference(name: str, golden) -> None:
    case = load(golden, f"abc_{name}")
    leaves = {x: case[x].clone().requires_grad_() for x in ("q", "k", "v", "x", "W_phi")}
    control = torch.einsum("bsc,hnc->bhsn", leaves["x"], leaves["W_phi"])
    absent = torch.arange(control.size(2)) >= case["key_lengths"][:, None, None]
    control = control.masked_fill(absent.unsqueeze(-1), -math.inf)
    output, _ = attend(leaves["q"], leaves["k"], leaves["v"], control, bool(case["causal"]), True)
    torch.testing.assert_close(output, case["out"], **EXACT)
    found = torch.autograd.grad((output * case["w"]).sum(), list(leaves.values()))
    for leaf, gradient in zip(leaves, found, strict=True):
        torch.testing.assert_close(gradient, case[f"grad_{leaf}"], **EXACT)


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("name", SUMS)
def test_sums_are_the_reference(name: str, empty: bool, golden) -> None:
    case = load(golden, f"abc_{name}")
    leaves = [case[x].clone().requires_grad_() for x in "qkv"]
    output, _ = attend(*leaves, case["phi"], bool(case["causal"]), False, empty)
    torch.testing.assert_close(output, case["out_all_slots" if empty else "out_written_slots_only"], **EXACT)
    found = torch.autograd.grad((output * case["w"]).sum(), leaves)
    for leaf, gradient in zip("qkv", found, strict=True):
        torch.testing.assert_close(gradient, case[f"grad_{leaf}" + ("" if empty else "_written")], **EXACT)


def random_case(generator: torch.Generator, length: int, means: bool, spread: float = 2.0) -> list[Tensor]:
    """Queries, keys, values and controls that need gradients; a fifth of the controls writes nothing."""
    sizes = {"query": 5, "key": 5, "value": 4, "control": 3}
    draws = [torch.randn(2, 3, length, size, generator=generator, dtype=torch.float64) for size in sizes.values()]
    nothing = torch.rand(draws[3].shape, generator=generator) < 0.2
    draws[3] = (spread * draws[3]).masked_fill(nothing, -math.inf if means else 0.0)
    return [x.requires_grad_() for x in draws]


def check_same(found: Tensor, wanted: Tensor, leaves: list[Tensor], generator: torch.Generator) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-10)
    pull = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    gradients = [torch.autograd.grad((x * pull).sum(), leaves, retain_graph=True) for x in (found, wanted)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other.nan_to_num(), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("means", [True, False])
@pytest.mark.parametrize("length", [1, CHUNK, 2 * CHUNK + 5])
def test_chunks_are_the_definition(length: int, means: bool, empty: bool, generator: torch.Generator) -> None:
    leaves = random_case(generator, length, means)
    output, _ = attend(*leaves, True, means, empty)
    check_same(output, naive_bounded_memory(*leaves, means, empty), leaves, generator)


@pytest.mark.parametrize("spread", [30.0, 200.0])
def test_controls_that_rise_steeply_stay_exact(spread: float, generator: torch.Generator) -> None:
    leaves = random_case(generator, 2 * CHUNK + 5, True, spread)
    output, _ = attend(*leaves, True, True)
    check_same(output, naive_bounded_memory(*leaves, True), leaves, generator)
    single = [x.detach().float().requires_grad_() for x in leaves]
    rough, _ = attend(*single, True, True)
    torch.testing.assert_close(rough.double(), output, rtol=1e-3, atol=1e-4)
    assert all(g.isfinite().all() for g in torch.autograd.grad(rough.sum(), single))


@pytest.mark.parametrize("means", [True, False])
def test_gradients_flow_through_the_memory_that_is_handed_on(means: bool, generator: torch.Generator) -> None:
    leaves = random_case(generator, 7, means)
    chunked = stepped = empty_bounded_memory(2, 3, 3, 5, 4, leaves[0])
    outputs, steps = [], []
    for part in (slice(0, 4), slice(4, 7)):
        q, k, v, c = (x[:, :, part] for x in leaves)
        output, chunked = causal_bounded_memory(chunked, q, k, v, c, means)
        outputs.append(output)
    for t in range(7):
        q, k, v, c = (x[:, :, t : t + 1] for x in leaves)
        stepped = write(stepped, k, v, c, means)
        steps.append(read(stepped, q))
    torch.testing.assert_close(chunked, stepped)
    torch.testing.assert_close(torch.cat(outputs, 2), torch.cat(steps, 2))
    check_same(torch.cat(steps, 2), naive_bounded_memory(*leaves, means), leaves, generator)

    def gradients(outputs: list[Tensor], state: BoundedMemory) -> tuple[Tensor, ...]:
        total = state.log_total.masked_fill(state.log_total < -1e29, 0.0)
        loss = sum(x.square().sum() for x in (*outputs, state.key, state.value, total))
        return torch.autograd.grad(loss, leaves)

    torch.testing.assert_close(gradients(outputs, chunked), gradients(steps, stepped), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("means", [True, False])
@pytest.mark.parametrize("length", [1, 6])
def test_writing_in_place_changes_no_number(means: bool, length: int, generator: torch.Generator) -> None:
    _, key, value, control = random_case(generator, length, means)
    wanted = write(empty_bounded_memory(2, 3, 3, 5, 4, key), key, value, control, means)
    state = empty_bounded_memory(2, 3, 3, 5, 4, key)
    heads_first = BoundedMemory(*(x.transpose(0, 1).contiguous().transpose(0, 1) for x in state))
    for old in (state, heads_first):
        with torch.no_grad():
            found = write(old, key, value, control, means)
        torch.testing.assert_close(found, BoundedMemory(*(x.detach() for x in wanted)))


@pytest.mark.parametrize("means", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_nothing_written_reads_zero_with_finite_gradients(means: bool, causal: bool, generator) -> None:
    query, key, value, control = random_case(generator, 3, means)
    nothing = torch.full_like(control, -math.inf if means else 0.0).requires_grad_()
    for empty in (True, False):
        output, state = attend(query, key, value, nothing, causal, means, empty)
        assert not output.any() and not anything_written(state).any()
        gradients = torch.autograd.grad(output.sum(), [query, key, value, nothing], allow_unused=True)
        assert all(g is None or g.isfinite().all() for g in gradients)


@pytest.mark.parametrize("means", [True, False])
def test_one_slot_a_token_is_softmax_attention(means: bool, generator: torch.Generator) -> None:
    query, key, value, _ = random_case(generator, 9, means)
    control = torch.eye(9, dtype=torch.float64).expand(2, 3, -1, -1)
    control = control.log() if means else control
    output, _ = attend(query, key, value, control, True, means)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(output, expected)


@pytest.mark.parametrize("form", [causal_bounded_memory, in_decaying_slots])
@pytest.mark.parametrize("means", [True, False])
def test_no_steps_change_nothing(means: bool, form, generator: torch.Generator) -> None:
    query, key, value, control = (x.detach() for x in random_case(generator, 2, means))
    control[..., 2] = -math.inf if means else 0.0
    state = write(empty_bounded_memory(2, 3, 3, 5, 4, key), key, value, control, means)
    output, after = form(state, *(x[:, :, :0] for x in (query, key, value, control)), means, False)
    assert output.shape == (2, 3, 0, 4)
    torch.testing.assert_close(after, state)


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("means, spread", [(False, 2.0), (True, 2.0), (True, 60.0)])
def test_decaying_slots_are_the_memory(means: bool, spread: float, empty: bool, generator: torch.Generator) -> None:
    """The form of devices, from a memory that is not empty, whose last slot is."""
    leaves = random_case(generator, 2 * CHUNK + 3, means, spread)
    state = empty_bounded_memory(2, 3, 3, 5, 4, leaves[0])
    begun = [x[:, :, :2].detach() for x in leaves]
    begun[3][..., 2] = -math.inf if means else 0.0
    state = write(state, *begun[1:], means)
    found = []
    for form in (causal_bounded_memory, in_decaying_slots):
        output, memory = form(BoundedMemory(*(x.clone() for x in state)), *leaves, means, empty)
        pull = torch.linspace(-1, 2, output.numel(), dtype=output.dtype).view(output.shape)
        total = (output * pull).sum() + memory.key.square().sum() + memory.value.sum()
        found.append([output, *memory, *torch.autograd.grad(total, leaves)])
    torch.testing.assert_close(*found, rtol=1e-8, atol=1e-8)
