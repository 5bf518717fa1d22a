"""What `growth` measures of softmax attention beside RFA and ABC (Peng 2022, tables 4.1 and 5.2).

Batch 4, size 64, 4 heads, projections included; 64 features, 32 slots.  As many keys as queries.
training:  a forward and backward pass of all queries at once.
decoding:  without gradients, one token after another; across, all keys are written before.
writing:   without gradients, all keys into the memory, one after another.
reading:   without gradients, one query from the memory of so many keys, which was there before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from seqstruct.attention.base import Attention, Shape, Site
from seqstruct.attention.registry import get_attention, make_config
from seqstruct.benchmarks.timing import Contestant

BATCH, MODEL, HEADS = 4, 64, 4
MECHANISMS = {"softmax": ("softmax", {}), "RFA": ("rfa", {"features": 64}), "ABC": ("abc_mlp", {"slots": 32})}
SITES = {"encoder": Site.ENCODER_SELF, "cross": Site.CROSS, "causal": Site.DECODER_SELF}


def training(mechanism: str, site: str, length: int) -> Contestant:
    module, x = _module(mechanism, site).train(), _inputs(length).requires_grad_()

    def backward(output: Tensor) -> None:
        module.zero_grad()
        x.grad = None
        output.sum().backward()

    return Contestant(lambda: module(x, x, x)[0].output, backward)


def decoding(mechanism: str, site: str, length: int) -> Contestant:
    module, x = _module(mechanism, site), _inputs(length)
    step = x[:, :1].clone()  # the same for all: further ones would count as memory

    def forward() -> Tensor:
        state = module.initial_state(BATCH)
        if site == "cross":
            state = module.write(state, x, x)
        for _ in range(length):
            if site == "causal":
                state = module.write(state, step, step)
            output = module.read(state, step).output
        return output

    return _without_gradients(forward)


def writing(mechanism: str, length: int) -> Contestant:
    module, step = _module(mechanism, "causal"), _inputs(1)

    def forward() -> Tensor:
        state = module.initial_state(BATCH)
        for _ in range(length):
            state = module.write(state, step, step)
        return tree_leaves(state)[0]

    return _without_gradients(forward)


def reading(mechanism: str, length: int) -> Contestant:
    module, x = _module(mechanism, "causal"), _inputs(length)
    with torch.no_grad():
        state = module.write(module.initial_state(BATCH), x, x)
    query = x[:, :1].clone()
    return _without_gradients(lambda: module.read(state, query).output)


TABLE_4_1: dict[str, Callable[[int], Contestant]] = {
    **{f"training {site} {name}": partial(training, name, site) for site in SITES for name in ("softmax", "RFA")},
    **{f"decoding {site} {name}": partial(decoding, name, site) for site in ("cross", "causal")
       for name in ("softmax", "RFA")},
}
TABLE_5_2: dict[str, Callable[[int], Contestant]] = {
    "writing ABC": partial(writing, "ABC"),
    **{f"reading {name}": partial(reading, name) for name in ("softmax", "ABC")},
    **{f"overall {name}": partial(training, name, "causal") for name in ("softmax", "ABC")},
}


def _module(mechanism: str, site: str) -> Attention:
    name, options = MECHANISMS[mechanism]
    torch.manual_seed(1)
    return get_attention(name)(make_config(name, options), Shape.of(SITES[site], MODEL, HEADS)).eval()


def _inputs(length: int) -> Tensor:
    return torch.randn(BATCH, length, MODEL, generator=torch.Generator().manual_seed(1))


def _without_gradients(forward: Callable[[], Tensor]) -> Contestant:
    return Contestant(torch.no_grad()(forward), lambda _: None)
