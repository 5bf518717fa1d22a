"""Stack attention, beside softmax attention, the authors' layers and a whole training step of a plain Transformer.

The unit u is one training step (forward, backward, clipping, Adam) of a `torch.nn.TransformerEncoder` language model
of the CFL configuration of DuSell and Chiang (2024): 5 layers of size 32, 4 heads, feedforward 64, dropout 0.1,
length 80, batch 10, float32, on the same device.  Dropout of attention weights keeps torch from its fused kernel, so
the same step without any stands beside the unit, and nothing else that is timed here has any.  Layers are whole
attention layers, projections included.  `peak MB` is what a forward and backward pass adds at most, `operators` how
many torch operators it calls, views among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.registry import get_attention, make_config
from seqstruct.benchmarks.stack_decoding import decoding_table
from seqstruct.benchmarks.stack_models import training_steps
from seqstruct.benchmarks.stack_peers import peer_layers
from seqstruct.benchmarks.timing import Contestant, Place, audit, heading, measure, table

MODEL, HEADS, BATCH, UNIT_LENGTH, VOCABULARY = 32, 4, 10, 80, 5
UNIT = "plain Transformer step, length 80"
UNITS = {UNIT: 0.1, f"{UNIT}, no dropout": 0.0}
LAYERS = {
    "softmax": ("softmax", {}),
    "superposition m=32": ("superposition_stack", {"size": 32}),
    "nondeterministic Q=2 S=3 m=5": ("nondeterministic_stack", {"states": 2, "symbols": 3, "size": 5}),
    "nondeterministic Q=3 S=3 m=5": ("nondeterministic_stack", {"states": 3, "symbols": 3, "size": 5}),
}
GROWTH = [40, 80, 160, 320, 640]
GROWING = ["softmax", "superposition m=32", "nondeterministic Q=2 S=3 m=5"]
DECODING = [32, 64, 128, 256, 512]
FEW = 3  # repeats of what takes long


def run(
    lengths: Sequence[int] | None,
    repeats: int,
    sections: Sequence[str] | None = None,
    device: str = "cpu",
    dtype: str = "float32",
) -> str:
    """The tables of the sections (all by default), one under the other.

    lengths: in place of each section's own: of the layers, of training steps, to decode to, and of growth.
    Raises ValueError on a device or a data type that is not to be had.
    """
    place = Place.of(device, dtype)
    peers, note = peer_layers(MODEL)
    tables = {
        "layers": lambda: "Layers\n" + beside_the_unit(
            "layer", lengths or [40, 80, 160], repeats, place, lambda length: layers(length, place, peers)),
        "steps": lambda: "Training steps: forward, backward, clipping, Adam\n" + beside_the_unit(
            "model", lengths or [UNIT_LENGTH], repeats, place, lambda length: training_steps(length, BATCH, place)),
        "decoding": lambda: decoding_table(LAYERS, MODEL, HEADS, lengths or DECODING, min(repeats, FEW), place),
        "growth": lambda: growth_table(lengths or GROWTH, repeats, place),
    }
    title = heading(f"Stack attention, batch {BATCH}", place, repeats) + note
    return "\n\n".join([title, *(make() for name, make in tables.items() if not sections or name in sections)])


def layers(length: int, place: Place, peers: dict[str, nn.Module]) -> dict[str, Contestant]:
    """Ours and the peers'."""
    ours = {label: layer(*choice, length, place) for label, choice in LAYERS.items()}
    return ours | {label: _contestant(peer, length, place) for label, peer in peers.items()}


HEADER = ["length", "forward ms", "forward+backward ms", "forward / u", "forward+backward / u", "peak MB", "operators"]


def beside_the_unit(
    what: str, lengths: Sequence[int], repeats: int, place: Place, make: Callable[[int], dict[str, Contestant]]
) -> str:
    """The table of what `make` gives for each length, in turn with the unit; what: the first heading."""
    rows = []
    for length in lengths:
        contestants = {name: plain_step(place, dropout) for name, dropout in UNITS.items()} | make(length)
        timings = measure(contestants, repeats)
        unit = timings[UNIT].both
        for name, timing in timings.items():
            found = audit(contestants[name])
            times = f"{timing.forward:.2f}", f"{timing.both:.2f}"
            ratios = f"{timing.forward / unit:.2f}", f"{timing.both / unit:.2f}"
            size = str(UNIT_LENGTH if name in UNITS else length)
            rows.append([name, size, *times, *ratios, f"{found.peak:.1f}", str(found.operators)])
    return table([what, *HEADER], rows)


def growth_table(lengths: Sequence[int], repeats: int, place: Place) -> str:
    """Forward and backward time by length, and the exponent between one length and the next."""
    rows, ordered = [], sorted(lengths)
    for label in GROWING:
        choice = LAYERS[label]
        last: tuple[int, float] | None = None
        for length in ordered:
            few = repeats if length <= 2 * UNIT_LENGTH else min(repeats, FEW)
            contestant = layer(*choice, length, place)
            both = measure({label: contestant}, few, warm_up=1)[label].both
            exponent = "" if last is None else f"{math.log(both / last[1]) / math.log(length / last[0]):.2f}"
            found = audit(contestant)
            rows.append([label, str(length), f"{both:.2f}", exponent, f"{found.peak:.1f}", str(found.operators)])
            last = (length, both)
    header = ["layer", "length", "forward+backward ms", "exponent", "peak MB", "operators"]
    return "Growth with the length; the exponent from the length before\n" + table(header, rows)


def layer(name: str, options: dict[str, int], length: int, place: Place | None = None) -> Contestant:
    """A causal self-attention layer on random inputs, the gradient taken for its parameters and its input."""
    module = get_attention(name)(make_config(name, options), Shape.of(Site.DECODER_SELF, MODEL, HEADS))
    module.forward = partial(_output, module.forward)
    return _contestant(module, length, place or Place.of("cpu", "float32"))


def _output(forward: object, inputs: Tensor) -> Tensor:
    return forward(inputs, inputs, inputs)[0].output


def _contestant(module: nn.Module, length: int, place: Place) -> Contestant:
    generator = torch.Generator().manual_seed(1)
    module = module.to(place.device)
    inputs = torch.randn(BATCH, length, MODEL, generator=generator).to(place.device).requires_grad_()
    weights = torch.randn(BATCH, length, MODEL, generator=generator).to(place.device)

    def forward() -> Tensor:
        with place.precision():
            return place.finished(module(inputs))

    def backward(output: Tensor) -> None:
        for parameter in module.parameters():
            parameter.grad = None
        inputs.grad = None
        output.backward(weights.to(output.dtype))
        place.finished(output)

    return Contestant(forward, backward)


def plain_step(place: Place, dropout: float) -> Contestant:
    """The unit, or one of other dropout; its forward gives the loss, its backward the rest of the step."""
    one = nn.TransformerEncoderLayer(MODEL, HEADS, 2 * MODEL, dropout, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(one, 5, enable_nested_tensor=False)
    parts = nn.ModuleList([nn.Embedding(VOCABULARY, MODEL), encoder, nn.Linear(MODEL, VOCABULARY)]).to(place.device)
    mask = nn.Transformer.generate_square_subsequent_mask(UNIT_LENGTH, device=place.device)
    tokens = torch.randint(VOCABULARY, (BATCH, UNIT_LENGTH), generator=torch.Generator().manual_seed(1))
    tokens = tokens.to(place.device)

    def loss() -> Tensor:
        logits = parts[2](encoder(parts[0](tokens), mask=mask, is_causal=True))
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())

    return place.training_step(parts, loss)
