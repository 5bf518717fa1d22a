"""Stack attention layers beside softmax attention and a whole training step of a plain Transformer.

The unit u is one training step (forward, backward, clipping, Adam) of a `torch.nn.TransformerEncoder` language model
of the CFL configuration of DuSell and Chiang (2024): 5 layers of size 32, 4 heads, feedforward 64, dropout 0.1,
length 80, batch 10, float32.  Layers are whole attention layers, projections included.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.registry import get_attention, make_config
from seqstruct.benchmarks.timing import Contestant, machine, measure, table

MODEL, HEADS, BATCH, UNIT_LENGTH, VOCABULARY = 32, 4, 10, 80, 5
UNIT = "plain Transformer step, length 80"
LAYERS = {
    "softmax": ("softmax", {}),
    "superposition m=32": ("superposition_stack", {"size": 32}),
    "nondeterministic Q=2 S=3 m=5": ("nondeterministic_stack", {"states": 2, "symbols": 3, "size": 5}),
    "nondeterministic Q=3 S=3 m=5": ("nondeterministic_stack", {"states": 3, "symbols": 3, "size": 5}),
}


def run(lengths: Sequence[int], repeats: int) -> str:
    """The table.  Raises ValueError on a length below 1."""
    if min(lengths) < 1:
        raise ValueError(f"expected lengths of 1 or more, got {min(lengths)}")
    rows = []
    for length in lengths:
        contestants = {UNIT: plain_step()}
        contestants |= {label: layer(*choice, length) for label, choice in LAYERS.items()}
        timings = measure(contestants, repeats)
        unit = timings.pop(UNIT)
        rows.append([UNIT, str(UNIT_LENGTH), "", f"{unit.both:.2f}", "", "1", ""])
        for label, timing in timings.items():
            times = f"{timing.forward:.2f}", f"{timing.both:.2f}"
            ratios = f"{timing.forward / unit.both:.2f}", f"{timing.both / unit.both:.2f}"
            rows.append([label, str(length), *times, *ratios, f"{timing.kept:.1f}"])
    header = ["layer", "length", "forward ms", "forward+backward ms", "forward / u", "forward+backward / u", "kept MB"]
    title = f"Stack attention, batch {BATCH}, float32; medians of {repeats}\n{machine()}\n"
    return title + table(header, rows)


def layer(name: str, options: dict[str, int], length: int) -> Contestant:
    """A causal self-attention layer on random inputs, the gradient taken for its parameters and its input."""
    generator = torch.Generator().manual_seed(1)
    shape = Shape.of(Site.DECODER_SELF, MODEL, HEADS)
    module = get_attention(name)(make_config(name, options), shape)
    inputs = torch.randn(BATCH, length, MODEL, generator=generator, requires_grad=True)
    weights = torch.randn(BATCH, length, MODEL, generator=generator)

    def backward(output: Tensor) -> None:
        for parameter in module.parameters():
            parameter.grad = None
        inputs.grad = None
        output.backward(weights)

    return Contestant(lambda: module(inputs, inputs, inputs)[0].output, backward)


def plain_step() -> Contestant:
    """The unit; its forward gives the loss, its backward the rest of the step."""
    one = nn.TransformerEncoderLayer(MODEL, HEADS, 2 * MODEL, 0.1, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(one, 5, enable_nested_tensor=False)
    parts = nn.ModuleList([nn.Embedding(VOCABULARY, MODEL), encoder, nn.Linear(MODEL, VOCABULARY)])
    optimizer = torch.optim.Adam(parts.parameters())
    mask = nn.Transformer.generate_square_subsequent_mask(UNIT_LENGTH)
    tokens = torch.randint(VOCABULARY, (BATCH, UNIT_LENGTH), generator=torch.Generator().manual_seed(1))

    def forward() -> Tensor:
        logits = parts[2](encoder(parts[0](tokens), mask=mask, is_causal=True))
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())

    def backward(loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parts.parameters(), 5.0)
        optimizer.step()

    return Contestant(forward, backward)
