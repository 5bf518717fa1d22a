"""Declared growth of states, held against the sizes of states after so many steps."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from seqstruct.attention import ATTENTIONS, GROWTHS, Shape, Site, make_config
from seqstruct.testing.cases import OPTIONS

DECODERS = sorted(name for name, cls in ATTENTIONS.items() if Site.DECODER_SELF in cls.sites)
C = 8
ENOUGH = {  # options for so many steps
    "mean_pool": {"slots": 5, "stride": 40}, "linformer": {"slots": 3, "length": 200},
    "nondeterministic_stack": {"states": 1, "symbols": 2, "size": 2},
}


def numbers(state) -> int:
    """How many a state has, in tensors at any depth."""
    if isinstance(state, Tensor):
        return state.numel()
    return sum(map(numbers, state)) if isinstance(state, tuple) else 0


@pytest.mark.parametrize("name", DECODERS)
def test_states_grow_as_they_are_declared_to(name):
    """From N to 4N steps: not at all, or about four or sixteen times; cells and tables are allocated ahead."""
    cost = ATTENTIONS[name].cost
    assert cost is not None and cost.training in GROWTHS[1:] and cost.state in GROWTHS
    options, steps = ENOUGH.get(name, OPTIONS.get(name, [{}])[0]), 160 if cost.state == "quadratic" else 40
    shape = Shape(embed_dim=C, key_dim=C, value_dim=C, num_heads=2, dropout=0.0, site=Site.DECODER_SELF, causal=True)
    attention = ATTENTIONS[name](make_config(name, options), shape).eval()
    state, sizes = attention.initial_state(1), {}
    with torch.no_grad():
        for step in range(1, 4 * steps + 1):
            x = torch.ones(1, 1, C)
            _, state = attention.step(state, x, x, x, None)
            if step in (steps, 4 * steps):
                sizes[step] = numbers(state)
    exponent = math.log(sizes[4 * steps] / sizes[steps], 4)
    assert abs(exponent - GROWTHS.index(cost.state)) < 0.35, sizes
