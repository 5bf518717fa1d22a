"""Decoding, one sequence, one step at a time, through whole attention layers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import torch

from seqstruct.attention.base import Attention, Shape, Site
from seqstruct.attention.registry import get_attention, make_config
from seqstruct.benchmarks.timing import Place, megabytes, table

NEAR = 4  # steps on either side of a length that stand for it
STORED = (
    "Stored: by softmax, keys and values of all steps, O(t); by the superposition stack, its t elements, O(t);\n"
    "by the nondeterministic stack, inner weights between all pairs of times, O(t^2), O(t) of them new at a step, and\n"
    "room for a quarter more steps; a step beyond its option max_length is refused."
)


def decoding_table(
    layers: dict[str, tuple[str, dict[str, int]]],
    embed_dim: int,
    heads: int,
    lengths: Sequence[int],
    repeats: int,
    place: Place,
) -> str:
    """Time of a step at each length, of all steps up to it, and the state's size then."""
    rows, last = [], max(lengths)
    for label, (name, options) in layers.items():
        shape = Shape.of(Site.DECODER_SELF, embed_dim, heads)
        module = get_attention(name)(make_config(name, options), shape).to(place.device).eval()
        runs = [decode(module, last + NEAR, lengths, place) for _ in range(1 + repeats)][1:]
        steps = [1e3 * median(times) for times in zip(*(times for times, _ in runs), strict=True)]
        for length in sorted(set(lengths)):
            near = median(steps[max(0, length - 1 - NEAR) : length + NEAR])
            size = runs[-1][1][length]
            rows.append([label, str(length), f"{near:.3f}", f"{sum(steps[:length]):.1f}", f"{size:.2f}"])
    header = ["layer", "length", "step ms", "all steps ms", "state MB"]
    return f"Decoding, one sequence, one step at a time\n{STORED}\n" + table(header, rows)


@torch.no_grad()
def decode(module: Attention, steps: int, lengths: Sequence[int], place: Place) -> tuple[list[float], dict[int, float]]:
    """Seconds of each step, and megabytes of the state after those many steps."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(1, steps, module.shape.embed_dim, generator=generator).to(place.device)
    times, sizes = [], {}
    with place.precision():
        state = module.initial_state(1)
        for t, given in enumerate(inputs.split(1, 1), 1):
            start = time.perf_counter()
            state = module.write(state, given, given)
            place.finished(module.read(state, given).output)
            times.append(time.perf_counter() - start)
            if t in lengths:
                sizes[t] = megabytes(state)
    return times, sizes
