"""A function that a compiled graph holds whole."""

from __future__ import annotations

import io

import pytest
import torch
from torch import Tensor, nn

from seqstruct.ops.opaque import opaque

WEIGHTS = 3


def fake(x: Tensor, weight: Tensor, offset: Tensor | None, times: int) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(x.shape[::2]), x.new_empty(x.size(0), dtype=torch.long)


@opaque(fake)
def looping(x: Tensor, weight: Tensor, offset: Tensor | None, times: int) -> tuple[Tensor, Tensor, Tensor]:
    """A loop over tokens, a branch on a number; results that are transposed, a view, an input and integers."""
    steps = []
    for step in x.unbind(1):
        steps.append((step if not steps else step + steps[-1]).sin() * weight)
    found = torch.stack(steps, 1) * times if float(x.detach().sum()) < 1e9 else x
    found = found if offset is None else found + offset
    return found.transpose(0, 1).contiguous().transpose(0, 1), found[:, -1], found.sum(1).argmax(1)


class Net(nn.Module):
    def forward(self, x: Tensor, weight: Tensor, offset: Tensor | None) -> Tensor:
        found, last, place = looping(x.cos(), weight, offset, 2)
        return found * last.unsqueeze(1) + place[:, None, None]


@pytest.mark.parametrize("given", [False, True])
def test_compiled_it_has_the_values_and_gradients_of_eager_mode(given, generator):
    torch._dynamo.reset()
    graphs = []

    def backend(graph, examples):
        graphs.append(graph)
        return torch._dynamo.lookup_backend("aot_eager")(graph, examples)

    net = torch.compile(Net(), backend=backend, fullgraph=True, dynamic=True)
    for sizes in ((5, 7, WEIGHTS), (4, 13, WEIGHTS)):
        leaves = [torch.randn(size, generator=generator).requires_grad_() for size in (sizes, WEIGHTS, WEIGHTS)]
        inputs = leaves if given else [*leaves[:2], None]
        leaves = leaves if given else leaves[:2]
        results = [form(*inputs) for form in (Net(), net)]
        torch.testing.assert_close(*results)
        both = [torch.autograd.grad((result * result.detach().cos()).sum(), leaves) for result in results]
        torch.testing.assert_close(*reversed(both))
        with torch.no_grad():
            assert torch.equal(net(*inputs), Net()(*inputs))
    assert len(graphs) == 2  # with gradients, and without


def test_derivatives_are_in_the_types_of_the_values(generator):
    """In float32 too, which autocast would change; nobody asked for it."""
    torch._dynamo.reset()
    inputs = [torch.randn(size, generator=generator, requires_grad=True) for size in ((64, 513), (513, 7))]
    direction = torch.randn(64, 7, generator=generator)
    wanted = torch.autograd.grad(product(*inputs), inputs, direction)
    found = torch.autograd.grad(torch.compile(product, backend="aot_eager")(*inputs), inputs, direction)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@opaque(lambda left, right: left.new_empty(left.size(0), right.size(1)))
def product(left: Tensor, right: Tensor) -> Tensor:
    return left @ right


def test_exported_it_is_one_operator(generator):
    inputs = [torch.randn(size, generator=generator) for size in ((5, 7, WEIGHTS), WEIGHTS, WEIGHTS)]
    program, saved = torch.export.export(Net(), tuple(inputs)), io.BytesIO()
    assert sum("looping" in str(node.target) for node in program.graph.nodes) == 1
    torch.export.save(program, saved)
    saved.seek(0)
    torch.testing.assert_close(torch.export.load(saved).module()(*inputs), Net()(*inputs))


def test_in_eager_mode_it_is_the_function_itself(generator):
    x, weight = torch.randn(2, 3, WEIGHTS, generator=generator), torch.ones(WEIGHTS)
    found, _, place = looping(x, weight, None, times=2)
    assert not found.is_contiguous() and place.dtype == torch.long
