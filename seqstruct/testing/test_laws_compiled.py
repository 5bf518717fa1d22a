"""The laws of `torch.compile` and `torch.export`: one graph for all lengths, and a decoding step, saved and loaded."""

from __future__ import annotations

import io
import shutil
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seqstruct.attention import Attention, Site
from seqstruct.attention.states import map_tensors
from seqstruct.ops.compiled import switched_on
from seqstruct.testing.cases import SITES, TOLERANCE, Case, build, distinct, gradients, inputs, output

FAMILIES = pytest.mark.law(one_of_each="family")
STEPS = pytest.mark.law(streaming=True, one_of_each="site")
FEW_STEPS = pytest.mark.law(streaming=True, one_of_each="family")
SIZES = ((5, 7, 11), (4, 9, 13))  # batch, queries, keys across


class Backend:
    """PyTorch's backend of a name, which counts the graphs that it compiles."""

    def __init__(self, name: str):
        self.compile, self.graphs = torch._dynamo.lookup_backend(name), 0

    def __call__(self, graph: Any, examples: list[Tensor]) -> Any:
        self.graphs += 1
        return self.compile(graph, examples)


def compiles(case: Case, backend: str, masked: bool, generator: torch.Generator, count: int = len(SIZES)) -> None:
    """Compiled whole, once for `count` sizes, it has the values and the gradients that it has in eager mode.

    Where `forward` is the loop over steps by which a mechanism is defined, each length has a graph of its own.
    """
    switched_on()  # kernels are loaded
    torch._dynamo.reset()
    attention, counting = build(case, generator), Backend(backend)
    compiled = torch.compile(attention, backend=counting, fullgraph=True, dynamic=count > 1)
    unrolled, first = attention.left_to_right and type(attention).parallel is Attention.parallel, 0
    for number, sizes in enumerate(SIZES[:count], 1):
        query, memory = inputs(case, generator, *sizes)
        length, mask = memory.size(1), None
        if masked:
            lengths = torch.tensor([length, 0, 1, length - 1, 3])[: len(memory)]
            mask = torch.arange(length) >= lengths.unsqueeze(1)
        wanted, found = (output(form, query, memory, mask) for form in (attention, compiled))
        torch.testing.assert_close(found, wanted, **TOLERANCE)
        both = (gradients(result, attention, *distinct(query, memory)) for result in (found, wanted))
        torch.testing.assert_close(*both, **TOLERANCE)
        first = first or counting.graphs  # one, or another where numbers turn out to be constants
        assert counting.graphs == (number if unrolled else 1) * first


@FAMILIES
def test_one_graph(case: Case, generator: torch.Generator) -> None:
    compiles(case, "aot_eager", True, generator, 1)


@SITES
@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True])
def test_one_graph_for_all_lengths_at_every_site(case: Case, masked: bool, generator: torch.Generator) -> None:
    compiles(case, "aot_eager", masked, generator)


@FAMILIES
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor compiles by g++, which is not there")
def test_inductor(case: Case, generator: torch.Generator) -> None:
    compiles(case, "inductor", True, generator)


class StepOfTensors(nn.Module):
    """One decoding step as a function of tensors: a query B 1 C, the state's, and where keys are written, the key."""

    def __init__(self, attention: Attention, state: Any):
        """state: of which the structure is taken."""
        super().__init__()
        self.attention, self.state = attention, state

    def forward(self, query: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The output, and the tensors of the state after it."""
        given = iter(tensors)
        state = map_tensors(lambda _: next(given), self.state)
        if written_before(self.attention):
            return (self.attention.read(state, query).output,)
        key = next(given)
        reading, state = self.attention.step(state, query, key, key)
        return reading.output, *tensors_of(state)


def written_before(attention: Attention) -> bool:
    """Whether decoding reads a memory that is whole."""
    return attention.shape.site is Site.CROSS or attention.at_once


def tensors_of(state: Any) -> list[Tensor]:
    """All of a state, in order."""
    found: list[Tensor] = []
    map_tensors(found.append, state)
    return found


def exports(case: Case, generator: torch.Generator) -> None:
    """A step in the middle of a text, exported, saved and loaded, has the results that it has in eager mode."""
    switched_on()
    attention = build(case, generator)
    query, memory = (x.detach() for x in inputs(case, generator))
    with torch.no_grad():
        state, whole = attention.initial_state(len(memory)), written_before(attention)
        for part in (memory,) if whole else (memory[:, :3], memory[:, 3:4]):
            state = attention.write(state, part, part)
        step, given = StepOfTensors(attention, state), (query[:, 4:5], *tensors_of(state))
        given = given if whole else (*given, memory[:, 4:5])
        saved = io.BytesIO()
        torch.export.save(torch.export.export(step, given), saved)
        saved.seek(0)
        loaded = torch.export.load(saved).module()
        found, wanted = (form(*(x.clone() for x in given)) for form in (loaded, step))
    torch.testing.assert_close(found, wanted, equal_nan=True, **TOLERANCE)


@FEW_STEPS
def test_a_step_is_exported(case: Case, generator: torch.Generator) -> None:
    exports(case, generator)


@STEPS
@pytest.mark.slow
def test_a_step_is_exported_at_every_site(case: Case, generator: torch.Generator) -> None:
    exports(case, generator)
