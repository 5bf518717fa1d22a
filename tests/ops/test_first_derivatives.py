"""Every hand-written backward pass in the package is right in second derivatives, or refuses to be asked for them."""

from __future__ import annotations

import ast
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import torch

import seqstruct
from seqstruct.ops import scan, softmax
from seqstruct.ops.automata import rational_recurrence
from seqstruct.ops.cells import reading_lstm, stack_lstm
from seqstruct.ops.chains import chain_entropy, chain_log_partition, chain_marginals
from seqstruct.ops.compiled import VARIABLE
from seqstruct.ops.delta import gated_delta_rule, gated_slots
from seqstruct.ops.memory import feature_maps
from seqstruct.ops.memory.bounded_memory import causal_bounded_memory, empty_bounded_memory
from seqstruct.ops.memory.linear_attention import causal_linear_attention, empty_memory
from seqstruct.ops.pushdown import PushdownTape, pushdown_initial, pushdown_reading, pushdown_stack, pushdown_step
from seqstruct.ops.pushdown.launches import RunsByRow
from seqstruct.ops.semiring import SamplingSemiring
from seqstruct.ops.superposition import superposition_stack
from seqstruct.ops.trees import (
    constituency_marginals,
    dependency_argmax,
    projection,
    projective_log_partition,
    projective_marginals,
)

ROOT = Path(seqstruct.__file__).parent
TWICE = {"marginals._LogPartition", "linear._Linear"}  # they call functions that are differentiable then


def functions():
    """By module and name, all autograd functions of the package, whether imported so far or not."""
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        if file.stem.startswith("triton"):  # held in tests/gpu, where Triton is
            continue
        module = ".".join([ROOT.name, *file.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any("Function" in ast.unparse(base) for base in node.bases):
                function = getattr(import_module(module), node.name)
                found[f"{module.removeprefix('seqstruct.ops.')}.{node.name}"] = function
    return found


def nodes(result):
    """The autograd functions of the package that a result hangs on."""
    found, ahead, seen = set(), [result.grad_fn], set()
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        ahead += [before for before, _ in node.next_functions]
        written = getattr(type(node), "_forward_cls", None)
        if written is not None:
            found.add(f"{written.__module__.removeprefix('seqstruct.ops.')}.{written.__name__}")
    return found


def test_all_of_them_refuse_a_graph_but_for_two():
    found = functions()
    assert len(found) >= 19 and set(found) >= TWICE
    for name, function in found.items():
        refuses = hasattr(function.backward, "__wrapped__")
        assert refuses == (name not in TWICE), name


def of_pushdown_steps(draw):
    state = pushdown_initial(draw(2), 3, states=1, symbols=2)
    for _ in range(2):
        state = pushdown_step(state, draw(3, 10), draw(3, 2), states=1, symbols=2)
    return pushdown_reading(state)


def of_stack_lstm(draw):
    tape = partial(PushdownTape, states=1, symbols=1, sigmoid=True)
    return stack_lstm(draw(3, 2, 8), draw(2, 2), draw(2, 2), draw(4, 8), draw(2, 5), draw(5), draw(2, 2), tape)[0]


def of_reading_lstm(draw):
    return reading_lstm(draw(3, 2, 8), draw(3, 2, 2), draw(3, 2, 4), draw(2, 4, 4), draw(2, 8), draw(2, 2))


def of_bounded_memory(draw):
    query, key, value, control = draw(1, 2, 5, 3), draw(1, 2, 5, 3), draw(1, 2, 5, 3), draw(1, 2, 5, 2)
    return causal_bounded_memory(empty_bounded_memory(1, 2, 2, 3, 3, query), query, key, value, control, True)[0]


def of_linear_attention(draw):
    query, key, value = (draw(1, 2, 5, 3).exp() for _ in range(3))
    return causal_linear_attention(empty_memory(1, 2, 3, 3, query), query, key, value)[0]


def of_decaying_channels(draw):
    """Values and the memory are in plain products, which are right twice."""
    query, key, value, memory = draw(1, 2, 5, 3), draw(1, 2, 5, 3), draw(1, 2, 5, 3).detach(), draw(1, 2, 3, 3).detach()
    return gated_delta_rule(query, key, value, -draw(1, 2, 5, 3).exp(), None, memory)[0]


def of_decaying_slots(draw):
    query, key, value = draw(1, 2, 5, 3), draw(1, 2, 5, 3), draw(1, 2, 5, 3).detach()
    return gated_slots(query, key, value, draw(1, 2, 5, 4), -draw(1, 2, 5, 4).exp(), draw(1, 2, 4, 6))[0]


def of_runs_by_row(draw):
    return RunsByRow.apply(draw(3, 1, 4, 2).exp(), draw(3, 1, 2, 1, 1).exp(), draw(3, 1, 2), draw(1, 2))


def of_samples(draw):
    return SamplingSemiring(torch.Generator().manual_seed(1)).sum(draw(1, 5), -1)


def of_exceptions(draw):
    """Readings in log space."""
    return pushdown_stack(draw(1, 3, 10) * 3000, draw(1, 3, 2), draw(2), states=1, symbols=2)


CASES = {
    "chain_marginals": lambda draw: chain_marginals(draw(2, 4, 3), draw(2, 3, 3, 3)).edge,
    "chain_entropy": lambda draw: chain_entropy(draw(2, 4, 7), draw(2, 3, 7, 7)),
    "constituency_marginals": lambda draw: constituency_marginals(draw(2, 4, 4), torch.tensor([4, 3])),
    "projective_marginals": lambda draw: projective_marginals(draw(2, 4, 4)),
    "pushdown_stack": lambda draw: pushdown_stack(draw(2, 3, 10), draw(2, 3, 2), draw(2), states=1, symbols=2),
    "pushdown_stack in log space": of_exceptions,
    "pushdown_stack by row": of_runs_by_row,
    "pushdown_step": of_pushdown_steps,
    "superposition_stack": lambda draw: superposition_stack(draw(2, 3, 3).softmax(2), draw(2, 3, 2))[0],
    "stack_lstm": of_stack_lstm,
    "reading_lstm": of_reading_lstm,
    "additive_scores": lambda draw: softmax.additive_scores(draw(2, 3, 4), draw(2, 5, 4), draw(4)),
    "dependency_argmax": lambda draw: dependency_argmax(draw(2, 4, 4), gradient="spigot"),
    "project_simplex": lambda draw: projection.project_simplex(draw(2, 4)),
    "gaussian_features": lambda draw: feature_maps.gaussian_features(draw(1, 1, 2, 3), draw(4, 3)),
    "unit_norm": lambda draw: feature_maps.unit_norm(draw(2, 4)),
    "gated_scan": lambda draw: scan.gated_scan(draw(2, 3, 4), draw(2, 3, 4)),
    "rational_recurrence B": lambda draw: rational_recurrence("B", draw(2, 3, 3, 4)).hidden,
    "rational_recurrence B_max_plus": lambda draw: rational_recurrence("B_max_plus", draw(2, 3, 3, 4)).hidden,
    "causal_bounded_memory": of_bounded_memory,
    "causal_linear_attention": of_linear_attention,
    "gated_delta_rule": of_decaying_channels,
    "gated_slots": of_decaying_slots,
    "SamplingSemiring": of_samples,
}


def results(case):
    """The leaves of a case and what comes of them."""
    generator, leaves = torch.Generator().manual_seed(3), []

    def draw(*shape):
        leaves.append(torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_())
        return leaves[-1]

    return leaves, case(draw)


def refused(case):
    """Check that a graph is refused for every leaf, by `grad` and by `backward`; the functions that the result uses."""
    leaves, result = results(case)
    weight, used = torch.ones_like(result), nodes(result)
    first = torch.autograd.grad(result, leaves, weight, allow_unused=True)
    assert any(grad is not None for grad in first)
    for place in [i for i, grad in enumerate(first) if grad is not None]:
        leaves, result = results(case)
        with pytest.raises(RuntimeError, match="has first derivatives only: no create_graph=True"):
            torch.autograd.grad(result, leaves[place], weight, create_graph=True)
    leaves, result = results(case)
    with pytest.raises(RuntimeError, match="has first derivatives only: no create_graph=True"):
        result.backward(weight, create_graph=True)
    return used


@pytest.mark.filterwarnings("ignore:Using backward")
def test_whatever_hangs_on_them_refuses_a_graph(monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    used = set().union(*map(refused, CASES.values()))
    elsewhere = {name for name in functions() if name.startswith("seqstruct.bridge.")}
    assert used == set(functions()) - TWICE - elsewhere


def test_a_backward_pass_inside_autocast_keeps_its_types(monkeypatch, generator):
    monkeypatch.setenv(VARIABLE, "0")
    drawn = [torch.randn(1, 2, 5, 3, generator=generator) for _ in range(4)]
    found = []
    for inside in (False, True):
        leaves = [x.clone().requires_grad_() for x in drawn]
        result = causal_bounded_memory(empty_bounded_memory(1, 2, 3, 3, 3, leaves[0]), *leaves, True)[0]
        with torch.autocast("cpu", torch.bfloat16, enabled=inside):
            result.backward(torch.ones_like(result))
        found.append([x.grad for x in leaves])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


@pytest.mark.parametrize("C", [2, 7])
def test_log_partitions_are_right_twice(C):
    generator = torch.Generator().manual_seed(3)
    unary, edge, arcs = (
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((2, 3, C), (2, 2, C, C), (2, 4, 4))
    )
    assert torch.autograd.gradgradcheck(chain_log_partition, (unary, edge))
    assert torch.autograd.gradgradcheck(projective_log_partition, arcs)
