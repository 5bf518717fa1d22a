"""Sums over pairs of rows under decays of channels: against their definition, and their derivatives."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from seqstruct.ops.delta.channels import after, levels, products, sums
from tests.ops.delta.forms import EXACT, K, random

ROWS = pytest.mark.parametrize("rows", [1, 2, 8, 32])


def inputs(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """x, y and log-decays, some of them so strong that nothing is left."""
    log_decay = -torch.exp(2 * random(generator, rows, K))
    log_decay[:, 0, rows // 2] = -900.0
    return random(generator, rows, K), random(generator, rows, K), log_decay


def decays(log_decay: Tensor) -> Tensor:
    """B H t s K: from s to t, 0 for s > t."""
    rows = log_decay.size(-2)
    found = log_decay.new_zeros(*log_decay.shape[:2], rows, rows, log_decay.size(-1))
    for t in range(rows):
        for s in range(t + 1):
            found[:, :, t, s] = log_decay[:, :, s + 1 : t + 1].sum(-2).exp()
    return found


@ROWS
def test_products_and_sums_are_their_definitions(rows: int, generator: torch.Generator) -> None:
    x, y, log_decay = inputs(rows, generator)
    factors, pairs = levels(log_decay), decays(log_decay)
    wanted = torch.einsum("bhtk,bhsk,bhtsk->bhts", x, y, pairs)
    torch.testing.assert_close(products(x, y, log_decay, factors), wanted, **EXACT)
    weights = random(generator, rows, rows)
    wanted = torch.einsum("bhts,bhsk,bhtsk->bhtk", weights, y, pairs)
    torch.testing.assert_close(sums(weights, y, log_decay, factors), wanted, **EXACT)


@pytest.mark.parametrize("rows", [1, 2, 8])
def test_derivatives(rows: int, generator: torch.Generator) -> None:
    x, y, log_decay = (tensor.requires_grad_() for tensor in inputs(rows, generator))
    weights = random(generator, rows, rows).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y, g: products(x, y, g, levels(g)), (x, y, log_decay))
    assert torch.autograd.gradcheck(lambda w, y, g: sums(w, y, g, levels(g)), (weights, y, log_decay))


def test_what_comes_after_a_row() -> None:
    rows = torch.tensor([[1.0, -math.inf, 3.0, 4.0]]).mT
    assert after(rows).flatten().tolist() == [-math.inf, 7.0, 4.0, 0.0]
