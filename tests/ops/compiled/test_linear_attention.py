"""The compiled chunks of linear attention against those in PyTorch."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.memory.compiled_linear_attention import SPAN
from seqstruct.ops.memory.feature_maps import ArccosMap, EluMap, GaussianMap, LearnedMap
from seqstruct.ops.memory.linear_attention import Memory, causal_linear_attention, read, schedule, step

B, H = 2, 3
MAPS = {"none": 0, "elu": 0, "gaussian": 7, "gaussian not normed": 5, "arccos": 13, "learned": 5}
SHAPES = [(1, 5, 3), (33, 13, 7), (64, 64, 64), (2 * SPAN + 13, 16, 5)]  # T D E


def inputs(name: str, shape: tuple[int, int, int], dtype: torch.dtype, generator: torch.Generator) -> dict:
    T, D, E = shape

    def draw(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype)

    rows = MAPS[name]
    features = 2 * rows if "gaussian" in name else rows or D
    given = {"query": draw(B, H, T, D), "key": draw(B, H, T, D), "value": draw(B, H, T, E)}
    given |= {"memory": draw(B, H, features, E), "total": 5 + draw(B, H, features).square()}
    given |= {"log_gate": -draw(B, H, T).abs() / 4, "weight": draw(B, H, T).abs() + 0.1}
    given |= {"rows": draw(H, rows, D) / 4, "bias": draw(H, 1, rows)} if rows else {}
    return {k: x.requires_grad_() for k, x in given.items()}


def feature_map(name: str, given: dict):
    rows, bias, D = given.get("rows"), given.get("bias"), given["query"].size(-1)
    make = {
        "elu": EluMap,
        "gaussian": lambda: GaussianMap(rows, True, rows.new_ones(H, D)),
        "gaussian not normed": lambda: GaussianMap(rows / 4, False, rows.new_ones(H, D)),
        "arccos": lambda: ArccosMap(rows, True),
        "learned": lambda: LearnedMap(rows, bias),
    }.get(name, lambda: None)
    return make()


def attend(name: str, given: dict, gated: bool, weighted: bool, floor: float = 0.0) -> tuple[torch.Tensor, ...]:
    """Output, denominator, last memory and total."""
    query, key = (given[k].exp() if name == "none" else given[k] for k in ("query", "key"))
    state = Memory(given["memory"], given["total"], given["total"].new_zeros(B, H))
    plan = schedule(state.level, None, given["log_gate"] if gated else None)
    weight = given["weight"] if weighted else None
    output, denominator, end = causal_linear_attention(
        state, query, key, given["value"], plan, feature_map(name, given), weight, floor
    )
    return output, denominator, end.memory, end.total


def with_gradients(
    name: str, given: dict, gated: bool, weighted: bool, floor: float = 0.0
) -> list[torch.Tensor]:
    output, denominator, memory, total = attend(name, given, gated, weighted, floor)
    loss = sum((x * torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x)).sum() for x in (output, memory, total))
    gradients = torch.autograd.grad(loss, list(given.values()), allow_unused=True, materialize_grads=True)
    return [output, denominator, memory, total, *gradients]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MAPS)
def test_values_and_gradients_are_those_of_pytorch(name, shape, gated, weighted, both, generator):
    given = inputs(name, shape, torch.float64, generator)
    torch.testing.assert_close(*both(lambda: with_gradients(name, given, gated, weighted)), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("name", ["none", "elu", "arccos", "learned"])
def test_in_single_precision(name, compiled, generator):
    given = inputs(name, (70, 13, 7), torch.float32, generator)
    exact = {k: x.detach().double().requires_grad_() for k, x in given.items()}
    compiled(True)
    results = (with_gradients(name, x, True, True) for x in (given, exact))
    for ours, theirs in zip(*results, strict=True):
        assert (ours - theirs).abs().max() <= 2e-5 * theirs.abs().max()


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("part", ["query", "key", "log_gate"])
def test_what_is_no_number_makes_none_in_single_precision(name, part, compiled, generator):
    compiled(True)
    given = {k: x.detach() for k, x in inputs(name, (70, 13, 7), torch.float32, generator).items()}
    given[part][0, 1, 30] = torch.nan
    assert attend(name, given, True, True)[0][0, 1, 30].isnan().all()


@pytest.mark.parametrize("normed", [False, True])
def test_sines_and_cosines_in_single_precision(normed, compiled, generator):
    """One step from an empty memory gives the value back; of two, features decide how much of each."""
    compiled(True)
    x = torch.randn(1, 1, 2, 5, generator=generator) * 3
    rows = torch.randn(1, 64, 5, generator=generator)
    rows[0, :2] *= 1e4  # angles beyond the polynomials' range
    value = torch.tensor([[[[1.0], [0.0]]]])
    empty = Memory(torch.zeros(1, 1, 128, 1), torch.zeros(1, 1, 128), torch.zeros(1, 1))
    output, _, _ = causal_linear_attention(empty, x, x, value, None, GaussianMap(rows, normed, torch.ones(1, 5)))
    angles = (x / x.norm(dim=-1, keepdim=True) if normed else x)[0, 0] @ rows[0].T
    features = torch.cat([angles.double().sin(), angles.double().cos()], 1)
    first, second = features[1] @ features[0], features[1] @ features[1]
    assert output[0, 0, 0] == 1
    assert output[0, 0, 1].item() == pytest.approx((first / (first + second)).item(), abs=2e-3 if not normed else 1e-3)


def test_gradients_by_differences(compiled, generator):
    compiled(True)
    given = inputs("gaussian", (35, 3, 2), torch.float64, generator)
    names = list(given)

    def run(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        output, _, memory, total = attend("gaussian", dict(zip(names, tensors, strict=True)), True, True)
        return output, memory, total

    used = tuple(given[k] for k in names if k != "bias")
    names = [k for k in names if k != "bias"]
    assert torch.autograd.gradcheck(run, used, fast_mode=True)


def test_threads_share_the_heads(shared, generator):
    given = inputs("elu", (70, 13, 7), torch.float64, generator)
    torch.testing.assert_close(*shared(lambda: with_gradients("elu", given, True, True)), rtol=0, atol=0)


def test_without_gradients_nothing_is_kept(both, generator):
    given = {k: x.detach() for k, x in inputs("elu", (70, 13, 7), torch.float64, generator).items()}
    torch.testing.assert_close(*both(lambda: attend("elu", given, False, False)[0]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("order", [None, [1, 0], [1, 1, 0], [1]])
@pytest.mark.parametrize("decorated", [False, True])
@pytest.mark.parametrize("shape", [(1, 5, 3), (1, 64, 64), (1, 13, 71)], ids=str)
@pytest.mark.parametrize("name", MAPS)
def test_a_step_is_that_of_pytorch(name, shape, decorated, order, both, generator):
    """decorated: with gates, weights and a floor."""
    given = {k: x.detach() for k, x in inputs(name, shape, torch.float64, generator).items()}
    order = None if order is None else torch.tensor(order, dtype=torch.int32)
    new = {k: given[k] if order is None else given[k][order] for k in ("query", "key", "value", "log_gate", "weight")}

    def run():
        level = given["total"].new_zeros(B, H)
        state = Memory(given["memory"].clone(), given["total"].clone(), level)
        plan = schedule(level if order is None else level[order], None, new["log_gate"] if decorated else None)
        weight, features = new["weight"] if decorated else None, feature_map(name, given)
        floor = 30.0 if decorated else 0.0
        *found, after = step(state, order, new["query"], new["key"], new["value"], plan, features, weight, floor)
        return [*found, *after, *read(after, new["query"].flip(0), features)]

    torch.testing.assert_close(*both(run), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "elu"])
def test_floors_of_the_denominator(name, gated, compiled, generator):
    given = inputs(name, (70, 13, 7), torch.float64, generator)
    compiled(False)
    denominator = with_gradients(name, given, gated, True)[1]
    floor = denominator.median().item() * (1 + 1e-6)  # half of the readings have it
    expected = with_gradients(name, given, gated, True, floor)
    compiled(True)
    torch.testing.assert_close(with_gradients(name, given, gated, True, floor), expected, rtol=1e-10, atol=1e-9)


def test_a_step_with_gradients_is_left_to_pytorch(compiled, generator):
    compiled(True)
    given = inputs("elu", (1, 5, 3), torch.float64, generator)
    state = Memory(given["memory"], given["total"], given["total"].new_zeros(B, H))
    before = given["memory"].detach().clone()
    output, _, _ = step(state, None, given["query"], given["key"], given["value"], None, EluMap())
    output.sum().backward()
    assert torch.equal(given["memory"], before)
    assert given["key"].grad.abs().sum() > 0


@pytest.mark.parametrize("part, read_alone", [
    ("log_gate", False), ("rows", False), ("rows", True), ("bias", False), ("bias", True),
])
def test_so_is_a_step_whose_gate_or_map_alone_has_a_gradient(part, read_alone, both, generator):
    given = {k: x.detach() for k, x in inputs("learned", (1, 5, 3), torch.float64, generator).items()}

    def run():
        known = given | {part: given[part].clone().requires_grad_()}
        state = Memory(known["memory"].clone(), known["total"].clone(), known["total"].new_zeros(B, H))
        features, plan = feature_map("learned", known), schedule(state.level, None, known["log_gate"])
        query, key, value = (known[k] for k in ("query", "key", "value"))
        if read_alone:
            output, _ = read(state, query, features)
        else:
            output, _, _ = step(state, None, query, key, value, plan, features)
        return torch.autograd.grad(output.sum(), known[part])

    torch.testing.assert_close(*both(run), rtol=1e-10, atol=1e-12)
