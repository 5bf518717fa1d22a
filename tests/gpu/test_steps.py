"""Single steps by kernels against one pass in float64, rows in a new order on the way."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from seqstruct.ops import gpu
from seqstruct.ops.memory import (
    ArccosMap,
    EluMap,
    GaussianMap,
    LearnedMap,
    bounded_memory,
    empty_bounded_memory,
    empty_memory,
    linear_attention,
    schedule,
)
from tests.gpu.places import DEVICE, draw, needs_triton, unwritten  # noqa: F401

pytestmark = needs_triton
B, H, T, D, E, N = 3, 2, 4, 9, 37, 41
ORDERS = {1: torch.tensor([2, 0, 0, 1]), 3: torch.tensor([1, 3])}


def both(start, step, inputs):
    """Outputs and memories after each of T steps: on the device in float32, and on the CPU in float64."""
    found = []
    for device, dtype in ((DEVICE, torch.float32), (torch.device("cpu"), torch.float64)):
        state = start(torch.zeros(1, device=device, dtype=dtype))
        outcomes, rows = [], torch.arange(B)
        for t in range(T):
            order = ORDERS.get(t)
            rows = rows if order is None else rows[order]
            now = [x[rows, :, t : t + 1].to(device, dtype) for x in inputs]
            assert gpu.takes(*now) == (dtype == torch.float32)
            *reading, state = step(state, None if order is None else order.to(device), *now)
            outcomes += [x.cpu().double().clone() for x in (*reading, *state)]
        found.append(outcomes)
    torch.testing.assert_close(*found, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("name", ["features", "elu", "gaussian", "arccos", "learned"])
@torch.no_grad()
def test_linear_attention(name, gated):
    inputs = [draw(1, B, H, T, D), draw(2, B, H, T, D), draw(3, B, H, T, E), draw(4, B, H, T)]
    rows, bias = draw(5, H, N, D), draw(6, H, 1, N)
    if name == "features":
        inputs[:2] = (x.abs() for x in inputs[:2])

    def made(like):
        weights, more = rows.to(like), bias.to(like)
        maps = {"elu": EluMap(), "gaussian": GaussianMap(weights, True, weights[:, 0]), "features": None}
        return maps | {"arccos": ArccosMap(weights, True), "learned": LearnedMap(weights, more)}

    def start(like):
        return empty_memory(B, H, {"gaussian": 2 * N, "elu": D, "features": D}.get(name, N), E, like)

    def step(state, order, query, key, value, gate):
        level = state.level if order is None else state.level[order]
        plan = schedule(level, None, F.logsigmoid(gate)) if gated else None
        weight = torch.sigmoid(-gate) if gated else None
        return linear_attention.step(state, order, query, key, value, plan, made(query)[name], weight, 0.5)

    both(start, step, inputs)


@pytest.mark.parametrize("means", [False, True])
@pytest.mark.parametrize("empty", [False, True])
@torch.no_grad()
def test_bounded_memory(means, empty):
    control = draw(4, B, H, T, N)
    control = control.masked_fill(draw(5, B, H, T, N) > 0.3, -math.inf if means else 0.0)
    control[:, :, :1] = -math.inf if means else 0.0
    inputs = [draw(1, B, H, T, D), draw(2, B, H, T, D), draw(3, B, H, T, E), control]
    both(
        lambda like: empty_bounded_memory(B, H, N, D, E, like),
        lambda state, order, *given: bounded_memory.step(state, order, *given, means, empty),
        inputs,
    )
