"""The memory of features against the reference numbers, and its forms against each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.ops.memory.feature_maps import (
    ArccosMap,
    EluMap,
    GaussianMap,
    LearnedMap,
    arccos_features,
    gaussian_features,
    positive_features,
    unit_norm,
)
from seqstruct.ops.memory.linear_attention import (
    CHUNK,
    LOWEST,
    Memory,
    causal_linear_attention,
    empty_memory,
    read,
    schedule,
    write,
)
from seqstruct.ops.memory.naive import naive_linear_attention

EXACT = {"rtol": 0, "atol": 1e-10}
ELU = ["elu_causal", "elu_causal_n70", "elu_cross", "elu_noncausal_lengths"]
RFA = ["gaussian_causal", "gaussian_causal_n40", "gaussian_cross_lengths", "gate_gaussian", "gate_gaussian_n40"]
RFA += ["arccos_causal", "arccos_causal_n40", "arccos_cross_lengths", "gate_arccos"]


def load(golden, name: str) -> dict:
    with np.load(golden("attention", f"{name}.npz")) as file:
        return {k: torch.from_numpy(file[k]) if file[k].dtype.kind in "fib" else str(file[k]) for k in file.files}


def attend(
    case: dict, query: Tensor, key: Tensor, value: Tensor, causal: bool, log_scale=None, log_gate=None, floor=0.0
):
    """Output, denominator and last memory; keys at or beyond key_lengths are not written."""
    batch, heads, length, features = key.shape
    if "key_lengths" in case:
        absent = torch.arange(length) >= case["key_lengths"][:, None, None]
        key = key.masked_fill(absent.unsqueeze(-1), 0.0)
    state = empty_memory(batch, heads, features, value.size(-1), value)
    plan = schedule(state.level, log_scale, log_gate)
    if log_scale is not None:
        key = key * plan.weight.unsqueeze(-1)
    if causal:
        return causal_linear_attention(state, query, key, value, plan, floor=floor)
    state = write(state, key, value, plan)
    return *read(state, query, None, floor), state


def test_the_definition_is_the_sums_written_out(generator: torch.Generator) -> None:
    query, key, value, _, gate = random_case(generator, 9, True)
    decay = gate.cumsum(-1)
    decays = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).exp()
    weights = (query @ key.mT * decays * (1 - gate.exp()).unsqueeze(-2)).tril()
    expected = weights @ value / weights.sum(-1, keepdim=True)
    torch.testing.assert_close(naive_linear_attention(query, key, value, gate.exp()), expected, rtol=0, atol=1e-12)
    weights = (query @ key.mT).tril()
    expected = weights @ value / weights.sum(-1, keepdim=True)
    torch.testing.assert_close(naive_linear_attention(query, key, value), expected, rtol=0, atol=1e-12)


def check_gradients(output: Tensor, case: dict, **leaves: Tensor) -> None:
    found = torch.autograd.grad((output * case["w"]).sum(), list(leaves.values()))
    for name, gradient in zip(leaves, found, strict=True):
        torch.testing.assert_close(gradient, case[f"grad_{name}"], **EXACT)


@pytest.mark.parametrize("name", ELU)
def test_linear_attention_is_the_reference(name: str, golden) -> None:
    case = load(golden, name)
    q, k, v = (case[x].clone().requires_grad_() for x in "qkv")
    output, denominator, state = attend(case, *(EluMap()(x)[0] for x in (q, k)), v, bool(case["causal"]))
    torch.testing.assert_close(output, case["out"], **EXACT)
    torch.testing.assert_close(denominator, case["denominator"], **EXACT)
    torch.testing.assert_close(state.memory, case["final_S"], **EXACT)
    torch.testing.assert_close(state.total, case["final_z"], **EXACT)
    check_gradients(output, case, q=q, k=k, v=v)


@pytest.mark.parametrize("name", RFA)
def test_random_feature_attention_is_the_reference(name: str, golden) -> None:
    case = load(golden, f"rfa_{name}")
    leaves = {x: case[x].clone().requires_grad_() for x in ("q", "k", "v", "sigma")}
    features = gaussian_features if case["kind"] == "gaussian" else arccos_features
    projection = case["random_matrices"] * leaves["sigma"].unsqueeze(1)
    query, key = (features(unit_norm(leaves[x]), projection) for x in "qk")
    torch.testing.assert_close(query, case["phi_q"], **EXACT)
    torch.testing.assert_close(key, case["phi_k"], **EXACT)
    log_gate = None
    if case["mode"] == "gate":
        gate = {x: case[x].clone().requires_grad_() for x in ("x", "w_g", "b_g")}
        leaves.update(gate)
        logits = (gate["x"] @ gate["w_g"].T + gate["b_g"]).transpose(1, 2)
        torch.testing.assert_close(logits.sigmoid(), case["gate"], **EXACT)
        log_gate, key = F.logsigmoid(logits), key * torch.sigmoid(-logits).unsqueeze(-1)
    output, denominator, state = attend(case, query, key, leaves["v"], case["mode"] != "cross", None, log_gate)
    torch.testing.assert_close(output, case["out"], **EXACT)
    torch.testing.assert_close(denominator, case["denominator"], **EXACT)
    torch.testing.assert_close(state.memory, case["final_S"], **EXACT)
    torch.testing.assert_close(state.total, case["final_z"], **EXACT)
    check_gradients(output, case, **leaves)


def test_without_unit_norm_it_is_equation_4_10(golden) -> None:
    case = load(golden, "rfa_eq410_unnormalised")
    projection = case["random_matrices"] / case["sigma"]
    log_scale = case["k"].square().sum(-1) / (2 * case["sigma"] ** 2)
    query, key = (gaussian_features(case[x], projection) for x in "qk")
    output, _, _ = attend(case, query, key, case["v"], True, log_scale)
    torch.testing.assert_close(output, case["out"], **EXACT)


@pytest.mark.parametrize("hyperbolic", [False, True])
@pytest.mark.parametrize("name", ["causal", "causal_large_inputs", "cross", "noncausal"])
def test_positive_features_are_the_reference_however_large(name: str, hyperbolic: bool, golden) -> None:
    case = load(golden, f"performer_{name}")
    q, k, v = (case[x].clone().requires_grad_() for x in "qkv")
    scaled = [x * x.size(-1) ** -0.25 for x in (q, k)]
    (query, _), (key, log_scale) = (positive_features(x, case["projection"], hyperbolic) for x in scaled)
    output, _, _ = attend(case, query, key, v, bool(case["causal"]), log_scale)
    torch.testing.assert_close(output, case["out_hyperbolic" if hyperbolic else "out"], **EXACT)
    if not hyperbolic:
        check_gradients(output, case, q=q, k=k, v=v)


def test_elu_features_are_elu_plus_one(generator: torch.Generator) -> None:
    x = torch.randn(40, generator=generator, dtype=torch.float64).requires_grad_()
    found, wanted = EluMap()(x)[0], F.elu(x) + 1
    torch.testing.assert_close(found, wanted)
    gradients = [torch.autograd.grad((y * x.detach()).sum(), x) for y in (found, wanted)]
    torch.testing.assert_close(*gradients)


def random_case(generator: torch.Generator, length: int, decayed: bool) -> list[Tensor | None]:
    """Positive features, values, log-scales and log-gates that need gradients (or None)."""
    shape = (2, 3, length)
    query, key = (torch.rand(*shape, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    value = torch.randn(*shape, 4, generator=generator, dtype=torch.float64)
    if not decayed:
        return [query.requires_grad_(), key.requires_grad_(), value.requires_grad_(), None, None]
    scale = 3 * torch.randn(shape, generator=generator, dtype=torch.float64)
    gate = -torch.rand(shape, generator=generator, dtype=torch.float64)
    return [x.requires_grad_() for x in (query, key, value, scale, gate)]


def weighted(key: Tensor, plan) -> Tensor:
    return key if plan is None else key * plan.weight.unsqueeze(-1)


@pytest.mark.parametrize("decayed", [False, True])
@pytest.mark.parametrize("length", [0, 1, CHUNK, CHUNK + 1, 2 * CHUNK + 5])
def test_chunks_are_the_definition(length: int, decayed: bool, generator: torch.Generator) -> None:
    query, key, value, scale, gate = leaves = random_case(generator, length, decayed)
    state = empty_memory(2, 3, 5, 4, value)
    plan = schedule(state.level, scale, gate)
    entering = 1.0 if gate is None else (1 - gate.exp()).unsqueeze(-1)
    output, _, _ = causal_linear_attention(state, query, weighted(key * entering, plan), value, plan)
    scaled = key if scale is None else key * scale.unsqueeze(-1).exp()
    expected = naive_linear_attention(query, scaled, value, None if gate is None else gate.exp())
    torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-10)
    leaves = [x for x in leaves if x is not None]
    pull = torch.randn(output.shape, generator=generator, dtype=torch.float64)
    both = (torch.autograd.grad((x * pull).sum(), leaves, materialize_grads=True) for x in (output, expected))
    torch.testing.assert_close(*both, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("decayed", [False, True])
def test_gradients_flow_through_the_memory_that_is_handed_on(decayed: bool, generator: torch.Generator) -> None:
    query, key, value, scale, gate = leaves = random_case(generator, 7, decayed)
    cut = [slice(0, 4), slice(4, 7)]
    chunked = stepped = empty_memory(2, 3, 5, 4, value)
    outputs, steps = [], []
    for part in cut:
        inputs = [None if x is None else x[:, :, part] for x in leaves]
        plan = schedule(chunked.level, *inputs[3:])
        output, _, chunked = causal_linear_attention(chunked, inputs[0], weighted(inputs[1], plan), inputs[2], plan)
        outputs.append(output)
    for t in range(7):
        inputs = [None if x is None else x[:, :, t : t + 1] for x in leaves]
        plan = schedule(stepped.level, *inputs[3:])
        stepped = write(stepped, weighted(inputs[1], plan), inputs[2], plan)
        steps.append(read(stepped, inputs[0])[0])
    torch.testing.assert_close(chunked, stepped)
    output, expected = torch.cat(outputs, 2), torch.cat(steps, 2)
    torch.testing.assert_close(output, expected)
    leaves = [x for x in leaves if x is not None]

    def gradients(output: Tensor, state: Memory) -> tuple[Tensor, ...]:
        loss = output.square().sum() + state.memory.square().sum() + state.total.square().sum()
        return torch.autograd.grad(loss, leaves, retain_graph=True)

    torch.testing.assert_close(gradients(output, chunked), gradients(expected, stepped), rtol=1e-8, atol=1e-9)


def test_writing_to_a_memory_with_heads_first_loses_nothing(generator: torch.Generator) -> None:
    _, key, value, _, _ = random_case(generator, 6, True)
    state = empty_memory(2, 3, 5, 4, value)
    heads_first = Memory(*(x.transpose(0, 1).contiguous().transpose(0, 1) for x in state))
    with torch.no_grad():
        torch.testing.assert_close(write(heads_first, key, value), write(state, key, value))


def test_the_empty_memory_reads_zero_with_finite_gradients(generator: torch.Generator) -> None:
    query, key, value, scale, _ = random_case(generator, 3, True)
    state = empty_memory(2, 3, 5, 4, value)
    assert not read(state, query)[0].any()
    hidden = scale * 0 + LOWEST
    plan = schedule(state.level, hidden, None)
    output, denominator, _ = causal_linear_attention(state, query, weighted(key * 0, plan), value, plan)
    assert not output.any() and not denominator.any()
    gradients = torch.autograd.grad(output.sum(), [query, key, value])
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_gates_close_to_zero_and_one_over_a_long_input_stay_exact(generator: torch.Generator) -> None:
    """Cumulated log-gates reach thousands; their differences are taken in double precision."""
    query, key, value, _, _ = random_case(generator, 300, False)
    gate = torch.where(torch.arange(300) % 7 == 0, -90.0, -1e-6).expand(2, 3, -1)
    exact, _, _ = causal_linear_attention(
        (state := empty_memory(2, 3, 5, 4, value)), query, key, value, schedule(state.level, None, gate.double())
    )
    single = [x.detach().float() for x in (query, key, value)]
    state = empty_memory(2, 3, 5, 4, single[2])
    rough, _, _ = causal_linear_attention(state, *single, schedule(state.level, None, gate.float()))
    torch.testing.assert_close(rough.double(), exact, rtol=1e-4, atol=1e-5)


MAPS = ["elu", "gaussian", "gaussian_normed", "arccos", "arccos_normed", "learned"]


def feature_map(kind: str, generator: torch.Generator):
    """A map from 5 dimensions, and its parameters."""
    weight = torch.randn(3, 8, 5, generator=generator, dtype=torch.float64).requires_grad_()
    extra = torch.rand(3, 5 if "gaussian" in kind else 1, generator=generator, dtype=torch.float64).requires_grad_()
    normed = kind.endswith("normed")
    if kind == "elu":
        return EluMap(), []
    if kind == "learned":
        return LearnedMap(weight, extra.unsqueeze(2) * torch.ones(8)), [weight, extra]
    if kind.startswith("arccos"):
        return ArccosMap(weight, normed), [weight]
    return GaussianMap(weight / 3, normed, extra), [weight]


@pytest.mark.parametrize("decayed", [False, True])
@pytest.mark.parametrize("kind", MAPS)
def test_features_made_chunk_by_chunk_are_the_same(kind: str, decayed: bool, generator: torch.Generator) -> None:
    length = 2 * CHUNK + 5
    made, parameters = feature_map(kind, generator)
    query, key, value = (
        torch.randn(2, 3, length, 5, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(3)
    )
    weight = torch.rand(2, 3, length, generator=generator, dtype=torch.float64).requires_grad_()
    gate = -torch.rand(2, 3, length, generator=generator, dtype=torch.float64)
    leaves = [query, key, value, weight, *parameters]
    first = torch.randn(2, 3, 8, 5, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        size = made(query)[0].size(-1)
    state = empty_memory(2, 3, size, 5, value)
    state = state._replace(memory=state.memory + first[:, :, :1], total=state.total + 9)
    plan = schedule(state.level, None, gate.requires_grad_()) if decayed else None
    leaves += [gate] if decayed else []
    chunked = causal_linear_attention(state, query, key, value, plan, made, weight)
    features = [made(x)[0] for x in (query, key)]
    whole = causal_linear_attention(state, features[0], features[1] * weight.unsqueeze(-1), value, plan)
    torch.testing.assert_close(chunked, whole)
    pull = torch.randn(value.shape, generator=generator, dtype=torch.float64)

    def gradients(output: Tensor, _: Tensor, end: Memory) -> tuple[Tensor, ...]:
        loss = (output * pull).sum() + end.memory.square().sum() + end.total.sum()
        return torch.autograd.grad(loss, leaves, retain_graph=True)

    torch.testing.assert_close(gradients(*chunked), gradients(*whole), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("mode", ["causal", "cross"])
def test_what_the_released_code_clamps_is_a_factor_of_ours(mode: str, golden) -> None:
    """Its features are 0.1 of sines and cosines, its norms 0.001 larger, its denominators held at 1 or 0.001."""
    case = load(golden, f"rfa_public_code_{mode}")
    projection = case["random_matrices"] * case["sigma"].unsqueeze(1) / case["tau"]
    query, key = (
        gaussian_features(x / (x.norm(dim=-1, keepdim=True) + 1e-3), projection) for x in (case["q"], case["k"])
    )
    output, denominator, _ = attend(case, query, key, case["v"], mode == "causal")
    weight = 0.1**2 * projection.size(1)  # of an equal key, there
    if mode == "causal":
        floored = attend(case, query, key, case["v"], True, floor=1.0 / weight)[0]
        torch.testing.assert_close(floored, case["out"], **EXACT)
    denominator = denominator * weight
    torch.testing.assert_close(denominator, case["denominator"], **EXACT)
    held = denominator.clamp(min=1.0) if mode == "causal" else denominator.abs().clamp(min=1.0)
    for name, divisor in (("out", held), ("out_masked_path", denominator.abs().clamp(min=1e-3))):
        torch.testing.assert_close(output * (denominator / divisor).unsqueeze(-1), case[name], **EXACT)


@pytest.mark.parametrize("gated", [False, True])
def test_a_floor_stands_in_for_smaller_denominators(gated, generator):
    """Chunks against all pairs, with gradients by differences."""
    B, H, T, D, E = 2, 2, 37, 3, 2
    shapes = {"query": (B, H, T, D), "key": (B, H, T, D), "value": (B, H, T, E), "gate": (B, H, T)}
    given = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes.values()]
    floor = 3.0

    def chunks(query, key, value, gate):
        state = empty_memory(B, H, D, E, query)
        plan = schedule(state.level, None, F.logsigmoid(gate)) if gated else None
        return causal_linear_attention(state, query.exp(), key.exp(), value, plan, None, None, floor)[0]

    def pairs(query, key, value, gate):
        total = F.logsigmoid(gate).cumsum(-1) * float(gated)
        decay = (total.unsqueeze(-1) - total.unsqueeze(-2)).exp().tril()
        weights = (query.exp() @ key.exp().transpose(2, 3)) * decay
        return weights @ value / weights.sum(-1, keepdim=True).clamp(min=floor)

    given = [x.requires_grad_() for x in given]
    ours, theirs = chunks(*given), pairs(*given)
    torch.testing.assert_close(ours, theirs, **EXACT)
    weights = torch.randn(ours.shape, generator=generator, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad((x * weights).sum(), given, materialize_grads=True) for x in (ours, theirs))
    torch.testing.assert_close(ours, theirs, **EXACT)
    # step by step
    state = empty_memory(B, H, D, E, given[0])
    query, key, value, gate = (x.detach() for x in given)
    for t in range(T):
        now = slice(t, t + 1)
        plan = schedule(state.level, None, F.logsigmoid(gate[..., now])) if gated else None
        state = write(state, key[:, :, now].exp(), value[:, :, now], plan)
        output, _ = read(state, query[:, :, now].exp(), None, floor)
        torch.testing.assert_close(output, chunks(*given)[:, :, now].detach(), **EXACT)
