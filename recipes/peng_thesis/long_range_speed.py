"""Speed and memory of training steps on long texts (Peng 2022, Table 4.5), in times the Transformer's; no training.

Models are those of long_range.py, of its rows of IMDb at scale paper and of ListOps at the others, with nothing dropped
anywhere: attention weights are dropped by softmax alone, outside of the fused kernel, and would be timed with it.
Speed is training steps per second, memory the most that one step's new tensors take, on made-up texts of 1,000 to
4,000 tokens; each model takes turns with softmax.  It wants a machine that does nothing else.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from long_range import BASE, PLANS, Setting, plan, setting_of

from seqstruct.benchmarks.timing import Contestant, Place, audit, measure
from seqstruct.data.listops.formulas import SYMBOLS
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.models.structured_classifier import StructuredClassifier, StructuredClassifierConfig

LENGTHS = {"smoke": (40, 80), "small": (1000, 2000, 3000, 4000), "paper": (1000, 2000, 3000, 4000)}
BATCH = {"smoke": 2, "small": 2, "paper": 32}
REPEATS = 3


class LongRangeSpeed(Recipe):
    """Training steps by length."""

    paper = "peng_thesis"
    table = "4.5"
    stand_in = "4.5-stand-in"
    family = "efficient attention classifiers"
    rows = tuple(f"{task} {model}" for task in ("ListOps", "IMDb") for model in PLANS)
    smoke_rows = ("ListOps ABC-MLP",)
    licence = "none needed, texts are random"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """Those of IMDb at scale paper, of ListOps at the others; ABC-MLP is no row of the published table."""
        paper = scale == "paper"
        return [cell for cell in super().cells(scale, seeds)
                if cell.row.startswith("IMDb" if paper else "ListOps") and not (paper and "ABC" in cell.row)]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        timed = {"lengths": LENGTHS[cell.scale], "batch": BATCH[cell.scale], "repeats": REPEATS, "dropout": 0}
        return {**asdict(setting_of(cell)), **timed}

    def dataset(self, cell: Cell) -> str:
        device = "GPU" if cell.scale == "paper" else "CPU"
        return f"random texts, batch {BATCH[cell.scale]}, lengths {list(LENGTHS[cell.scale])}, no dropout, {device}"

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate({"smoke": 0.1, "small": 1.0, "paper": 1.0}[cell.scale], 0.1)

    def prepare(self, run: Run) -> Path:
        return run.prepared("random-texts", lambda folder: None)

    def train(self, run: Run, data: Path) -> Path:
        return data

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        cell = run.cell
        place = Place.of("cuda" if cell.scale == "paper" else "cpu", "float32")
        own, found = cell.row.partition(" ")[2], []
        for length in LENGTHS[cell.scale]:
            steps = {model: training_step(model, setting_of(cell), length, BATCH[cell.scale], place)
                     for model in dict.fromkeys((BASE, own))}  # fmt: skip
            timings = measure(steps, repeats=REPEATS, warm_up=1)
            peaks = {model: audit(step).peak for model, step in steps.items()}
            name = f"{length // 1000}k" if length >= 1000 else str(length)
            found += [
                Measurement(f"speed_{name}", timings[BASE].both / timings[own].both, "times Transformer"),
                Measurement(f"memory_{name}", peaks[own] / peaks[BASE], "times Transformer"),
            ]
        return found


def training_step(model: str, setting: Setting, length: int, batch: int, place: Place) -> Contestant:
    """A step on `batch` random texts of so many tokens."""
    layers, size, inner, heads = setting.sizes
    config = StructuredClassifierConfig(
        encoder_self_attention=plan(model, setting, length), encoder_layers=layers, encoder_embed_dim=size,
        encoder_ffn_embed_dim=inner, encoder_attention_heads=heads, max_source_positions=length + 1,
        tie_layers=setting.tied, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
    )  # fmt: skip
    dictionary = Dictionary()
    for symbol in SYMBOLS:
        dictionary.add_symbol(symbol)
    task = types.SimpleNamespace(source_dictionary=dictionary, labels=list(range(10)), pairs=False)
    built = StructuredClassifier.build_model(config, task).to(place.device)
    generator = torch.Generator().manual_seed(1)
    texts = torch.randint(4, len(dictionary), (batch, length), generator=generator).to(place.device)
    lengths = torch.full((batch,), length, device=place.device)
    target = torch.randint(10, (batch,), generator=generator).to(place.device)
    return place.training_step(built, lambda: torch.nn.functional.cross_entropy(built(texts, lengths), target))


recipe = LongRangeSpeed()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
