"""Causal attention in training, forward and backward, in units of PyTorch's fused softmax attention.

Batch 8, 8 heads of size 64: from queries, keys and values to outputs, without the projections around them; random
features are made in it, ABC's control is given; rows of the delta rule's family and its peers are in `delta_cases`.
All forms here keep O(T) numbers for the backward pass, `kept MB`, besides the fused kernel, which keeps O(T) too but
takes O(T^2) time.
Chunked forms make many short-lived tensors: with glibc, MALLOC_MMAP_THRESHOLD_=1073741824 and
MALLOC_TRIM_THRESHOLD_=2147483648 keep it from handing their memory back to the system each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.benchmarks.delta_cases import Case, delta_cases
from seqstruct.benchmarks.timing import Contestant, Place, draw, heading, measure, table
from seqstruct.ops.memory import (
    EluMap,
    GaussianMap,
    causal_bounded_memory,
    causal_linear_attention,
    empty_bounded_memory,
    empty_memory,
    schedule,
)
from seqstruct.plots.curves import log_panels
from seqstruct.plots.figures import save

BATCH, HEADS, DIM, FREQUENCIES, SLOTS = 8, 8, 64, 64, 32
UNIT = "softmax, fused"


def run(lengths: Sequence[int], repeats: int, plot: str | None = None, device: str = "cpu") -> str:
    """The table, and the curves as a picture under the name `plot`.

    Raises ValueError on a device that is not to be had, or a picture of another kind.
    """
    place = Place.of(device, "float32")
    rows, times, kept = [], {}, {}
    for length in lengths:
        timings = measure({name: _contestant(case, place) for name, case in cases(length, place).items()}, repeats,
                          place=place)
        for name, timing in timings.items():
            unit = timings[UNIT]
            ratios = f"{timing.forward / unit.forward:.2f}", f"{timing.both / unit.both:.2f}"
            cells = f"{timing.forward:.1f}", f"{timing.both:.1f}", *ratios, f"{timing.kept:.0f}"
            rows.append([name, str(length), *cells])
            times.setdefault(name, {})[length] = timing.both
            kept.setdefault(name, {})[length] = timing.kept
    if plot:
        panels = [("forward and backward, ms", times), ("kept for the backward pass, MB", kept)]
        save(log_panels(panels, f"Causal attention, batch {BATCH}, {HEADS} heads of {DIM}"), plot)
    header = ["attention", "length", "forward ms", "forward+backward ms", "of softmax: forward", "both", "kept MB"]
    peers = ["transformers", *(["flash-linear-attention"] if place.device.type == "cuda" else [])]
    title = f"Causal attention, batch {BATCH}, {HEADS} heads of {DIM}"
    return heading(title, place, repeats, *peers) + table(header, rows)


def cases(length: int, place: Place) -> dict[str, Case]:
    """By name: what makes the outputs, and the leaves that gradients are taken for."""
    leaf = partial(draw, device=place.device)
    query, key, value = (leaf(seed, BATCH, HEADS, length, DIM) for seed in (1, 2, 3))
    control = leaf(4, BATCH, HEADS, length, SLOTS)
    projection, gate = leaf(5, HEADS, FREQUENCIES, DIM), leaf(6, BATCH, HEADS, length)
    leaves = [query, key, value]

    def linear() -> Tensor:
        state = empty_memory(BATCH, HEADS, DIM, DIM, query)
        return causal_linear_attention(state, query, key, value, None, EluMap())[0]

    def random_features(gated: bool) -> Tensor:
        state = empty_memory(BATCH, HEADS, 2 * FREQUENCIES, DIM, query)
        plan = schedule(state.level, None, F.logsigmoid(gate)) if gated else None
        weight = torch.sigmoid(-gate) if gated else None
        features = GaussianMap(projection, True, projection[:, 0])
        return causal_linear_attention(state, query, key, value, plan, features, weight)[0]

    def bounded() -> Tensor:
        state = empty_bounded_memory(BATCH, HEADS, SLOTS, DIM, DIM, query)
        return causal_bounded_memory(state, query, key, value, control, True)[0]

    return {
        UNIT: (lambda: F.scaled_dot_product_attention(query, key, value, is_causal=True), leaves),
        "linear": (linear, leaves),
        f"rfa, {FREQUENCIES} frequencies": (lambda: random_features(False), [*leaves, projection]),
        f"rfa gated, {FREQUENCIES} frequencies": (lambda: random_features(True), [*leaves, projection, gate]),
        f"abc_mlp, {SLOTS} slots": (bounded, [*leaves, control]),
        **delta_cases(leaves, place),
    }


def _contestant(case: Case, place: Place) -> Contestant:
    outputs, leaves = case
    pull = draw(7, *leaves[0].shape, device=place.device).detach()
    return Contestant(outputs, lambda output: torch.autograd.grad(output, leaves, pull))
