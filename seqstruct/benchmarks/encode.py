"""Encoding texts, forward alone: one layer of RoBERTa-base's size with bounded memory (Peng 2022, Table 5.8).

Batch 16, size 768, 12 heads, feed-forward 3,072: attention, feed-forward part and norms; a whole encoder has 12 such
layers and an embedding.  Speed and memory are relative to softmax attention; memory is what a pass adds at most.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.registry import get_attention, make_config
from seqstruct.benchmarks.timing import Contestant, Place, audit, heading, measure
from seqstruct.command import text_table

BATCH, MODEL, HEADS, FEED_FORWARD = 16, 768, 12, 3072
BASE = "softmax"
SLOTS = (64, 128)


class Layer(nn.Module):
    """Attention and a feed-forward part, each added to its input and normalised."""

    def __init__(self, name: str, options: dict[str, int]):
        super().__init__()
        shape = Shape.of(Site.ENCODER_SELF, MODEL, HEADS)
        self.attention = get_attention(name)(make_config(name, options), shape)
        self.feed_forward = nn.Sequential(nn.Linear(MODEL, FEED_FORWARD), nn.GELU(), nn.Linear(FEED_FORWARD, MODEL))
        self.norms = nn.ModuleList([nn.LayerNorm(MODEL), nn.LayerNorm(MODEL)])

    def forward(self, x: Tensor) -> Tensor:
        x = self.norms[0](x + self.attention(x, x, x)[0].output)
        return self.norms[1](x + self.feed_forward(x))


def run(lengths: Sequence[int], repeats: int, device: str = "cpu") -> str:
    place = Place.of(device, "float32")
    rows = []
    for length in lengths:
        found = encoding(length, repeats, place)
        base_time, base_peak = found[BASE]
        for name, (milliseconds, peak) in found.items():
            cells = f"{milliseconds:.1f}", f"{base_time / milliseconds:.2f}", f"{peak:.0f}", f"{peak / base_peak:.2f}"
            rows.append([name, str(length), *cells])
    header = ["attention", "length", "forward ms", "times faster", "peak MB", "of softmax's"]
    return heading(f"Encoding, one layer, batch {BATCH}", place, repeats) + text_table(header, rows)


def encoding(length: int, repeats: int, place: Place) -> dict[str, tuple[float, float]]:
    """By name, milliseconds of a pass and megabytes that it adds at most."""
    contestants = {name: _contestant(layer, length, place) for name, layer in layers(length).items()}
    timings = measure(contestants, repeats, place=place)
    return {name: (timings[name].forward, audit(contestant).peak) for name, contestant in contestants.items()}


def layers(length: int) -> dict[str, Layer]:
    chosen = {BASE: ("softmax", {})}
    chosen |= {f"linformer, {n} slots": ("linformer", {"slots": n, "length": length}) for n in SLOTS}
    chosen |= {f"abc_mlp, {n} slots": ("abc_mlp", {"slots": n}) for n in SLOTS}
    return {label: Layer(*choice).eval() for label, choice in chosen.items()}


def _contestant(layer: Layer, length: int, place: Place) -> Contestant:
    layer = layer.to(place.device)
    x = torch.randn(BATCH, length, MODEL, generator=torch.Generator().manual_seed(1)).to(place.device)

    @torch.no_grad()
    def forward() -> Tensor:
        return layer(x)

    return Contestant(forward, lambda _: None)
