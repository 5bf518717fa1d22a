"""Layers of rational recurrences, projection and output gate included, beside `torch.nn.LSTM`.

The size of Peng (2022), section 6.6.2: 650 features in and out, float32; batches of 32, smaller ones where sequences
are long.  Gradients are taken for the input and all parameters; the state is carried in and handed out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from seqstruct.benchmarks.timing import Contestant, Place, draw, heading, measure
from seqstruct.command import text_table
from seqstruct.ops.automata import PATTERNS, rational_initial, rational_recurrence
from seqstruct.ops.linear import linear

SIZE, BATCH, MOST_WORDS = 650, 32, 2**14
LSTM = "torch.nn.LSTM"


def run(lengths: Sequence[int], repeats: int, device: str = "cpu") -> str:
    """Raises ValueError on a device that is not to be had."""
    place, rows = Place.of(device, "float32"), []
    for length in lengths:
        batch = max(1, min(BATCH, MOST_WORDS // length))
        inputs, weights = (draw(seed, batch, length, SIZE, device=place.device) for seed in (1, 2))
        contestants = {LSTM: lstm(inputs, weights)}
        contestants |= {f"RRNN({name})": rational(name, inputs, weights) for name in PATTERNS}
        timings = measure(contestants, repeats, place=place)
        for name, timing in timings.items():
            times = f"{timing.forward:.1f}", f"{timing.both:.1f}"
            rows.append([name, str(length), str(batch), *times, f"{timing.both / timings[LSTM].both:.2f}",
                         f"{timing.kept:.0f}"])
    header = ["layer", "length", "batch", "forward ms", "forward+backward ms", "of the LSTM's", "kept MB"]
    return heading(f"Rational recurrences, {SIZE} features, output gate", place, repeats) + text_table(header, rows)


def rational(automaton: str, inputs: Tensor, weights: Tensor) -> Contestant:
    """A layer with one product for all that depends on the word, biases at the gates alone."""
    size, columns, leaf = inputs.size(2), 2 * PATTERNS[automaton] + 1, partial(draw, device=inputs.device)
    weight = (leaf(3, columns * size, size) / size**0.5).detach().requires_grad_()
    bias = leaf(4, columns, size)
    gates = torch.ones(columns, 1, device=inputs.device)
    gates[1:-1:2] = 0.0
    leaves, extra = [inputs, weight, bias], {}
    if automaton == "F":
        extra = {"final_logits": leaf(5, 2, size), "epsilon_logits": leaf(6, size)}
        leaves += extra.values()
    state = rational_initial(automaton, len(inputs), size, inputs.detach())

    def forward() -> Tensor:
        projected = linear(inputs, weight, (bias * gates).flatten())
        return rational_recurrence(automaton, projected.unflatten(2, (columns, size)), state, **extra).hidden

    return Contestant(forward, lambda hidden: torch.autograd.grad(hidden, leaves, weights))


def lstm(inputs: Tensor, weights: Tensor) -> Contestant:
    size = inputs.size(2)
    layer = nn.LSTM(size, size, batch_first=True).to(inputs.device)
    leaves = [inputs, *layer.parameters()]
    return Contestant(lambda: layer(inputs)[0], lambda hidden: torch.autograd.grad(hidden, leaves, weights))
