"""The pyramid against the definition of its nodes, one at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqstruct.ops.cells import gated_convolution


def draw(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def node(leaves: list[Tensor], weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor | None]:
    """The node over all of these leaves, and its gates, by recursion."""
    if len(leaves) == 1:
        return leaves[0], None
    left, right = node(leaves[:-1], weight, bias)[0], node(leaves[1:], weight, bias)[0]
    size = len(bias)
    of_left, of_right, gate_left, gate_right = weight.split([size, size, 3, 3])
    shares = (gate_left @ left + gate_right @ right).softmax(0)
    new = torch.relu(of_left @ left + of_right @ right + bias)
    return shares[0] * new + shares[1] * left + shares[2] * right, shares


@pytest.mark.parametrize("length", [1, 2, 6])
def test_nodes_and_gates(length, generator):
    leaves, weight, bias = draw(generator, 3, length, 4), draw(generator, 14, 4), draw(generator, 4)
    tops, gates = gated_convolution(leaves, weight, bias)
    assert [level.shape for level in gates] == [(3, length - t, 3) for t in range(1, length)]
    for b in range(3):
        row = list(leaves[b])
        for t in range(length):
            expected, _ = node(row[length - 1 - t :], weight, bias)
            torch.testing.assert_close(tops[b, t], expected, rtol=0, atol=1e-12)
        for t in range(1, length):
            for j in range(length - t):
                torch.testing.assert_close(gates[t - 1][b, j], node(row[j : j + t + 1], weight, bias)[1])
    results = tops[1, -1], node(list(leaves[1]), weight, bias)[0]
    found, expected = (
        torch.autograd.grad(result.square().sum(), [leaves, weight], allow_unused=True) for result in results
    )
    for one, two in zip(found, expected, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"weight \(2C \+ 6\) C"):
        gated_convolution(torch.zeros(1, 2, 3), torch.zeros(6, 3), torch.zeros(3))
