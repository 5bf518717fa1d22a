"""Training steps on long texts, in times another attention's (Peng 2022, Table 4.5), with random texts and labels.

`python -m seqstruct.benchmarks.long_texts --config-dir DIR --config-name NAME GROUP=FILE ... --base ROW --out FILE`:
the models are those of a config and of its row/ROW, with nothing dropped anywhere: attention weights are dropped by
softmax alone, outside of the fused kernel, and would be timed with it.  Speed is training steps per second, memory the
most that one step's new tensors take; both take turns.  It wants a machine that does nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from seqstruct.benchmarks.timing import Contestant, Place, audit, made_up_task, measure
from seqstruct.command import module_parser, run_module
from seqstruct.data.listops.formulas import SYMBOLS
from seqstruct.harness.configs import composer
from seqstruct.models.transformer.classifier import StructuredClassifier, StructuredClassifierConfig
from seqstruct.scoring.measurement import Measurement, write


def compared(
    settings: Sequence[Mapping[str, Any]], lengths: Sequence[int], batch: int, repeats: int, place: Place
) -> list[Measurement]:
    """By length, the first model's speed and memory in times the second's.

    settings: one or two mappings of a length to the model's, see `settings_of`; one is held against itself.
    """
    found = []
    for length in lengths:
        steps = {i: training_step(one[length], length, batch, place) for i, one in enumerate(settings)}
        timings = measure(steps, repeats=repeats, warm_up=1)
        peaks = {i: audit(step).peak for i, step in steps.items()}
        name = str(length) if length % 1000 else f"{length // 1000}k"
        base = len(settings) - 1
        found += [
            Measurement(f"speed_{name}", timings[base].both / timings[0].both, "times Transformer"),
            Measurement(f"memory_{name}", peaks[0] / peaks[base], "times Transformer"),
        ]
    return found


def settings_of(folder: Path, name: str, overrides: Sequence[str], lengths: Sequence[int]) -> dict[int, dict[str, Any]]:
    """By length of a text, the model's settings in a config, for texts as long as that and without dropout.

    Raises ValueError if there is no such config.
    """
    from omegaconf import OmegaConf

    composed = composer(folder, name)
    made = {n: composed([*overrides, f"model.max_source_positions={n + 1}"]) for n in lengths}
    nothing = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
    return {n: {**OmegaConf.to_container(config.model, resolve=True), **nothing} for n, config in made.items()}


def training_step(settings: Mapping[str, Any], length: int, batch: int, place: Place) -> Contestant:
    """A step on `batch` random texts of so many tokens."""
    config = StructuredClassifierConfig(**{name: value for name, value in settings.items() if name != "_name"})
    task = made_up_task(SYMBOLS)
    task.labels, task.pairs = list(range(10)), False
    built = StructuredClassifier.build_model(config, task).to(place.device)
    generator = torch.Generator().manual_seed(1)
    texts = torch.randint(4, len(task.source_dictionary), (batch, length), generator=generator).to(place.device)
    lengths = torch.full((batch,), length, device=place.device)
    target = torch.randint(10, (batch,), generator=generator).to(place.device)
    return place.training_step(built, lambda: torch.nn.functional.cross_entropy(built(texts, lengths), target))


def _run(args: argparse.Namespace) -> None:
    if min(args.lengths) < 1 or args.batch < 1:
        raise ValueError(f"expected lengths and batch of 1 or more, got {min(args.lengths)} and {args.batch}")
    chosen = [args.overrides, [*args.overrides, f"row={args.base}"]]
    rows = [override for override in args.overrides if override.startswith("row=")]
    if rows[-1:] == [f"row={args.base}"]:
        chosen.pop()
    settings = [settings_of(args.config_dir, args.config_name, one, args.lengths) for one in chosen]
    place = Place.of(args.device, "float32")
    write(args.out, compared(settings, args.lengths, args.batch, args.repeats, place))


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.benchmarks.long_texts", __doc__)
    parser.add_argument("--config-dir", type=Path, required=True, metavar="DIR")
    parser.add_argument("--config-name", required=True, metavar="NAME")
    parser.add_argument("overrides", nargs="+", metavar="GROUP=FILE", help="the last row= is measured")
    parser.add_argument("--base", required=True, metavar="ROW", help="what it is held against")
    parser.add_argument("--lengths", type=int, nargs="+", required=True, metavar="N")
    parser.add_argument("--batch", type=int, default=2, metavar="N", help="texts in a batch (default: 2)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="timed steps (default: 3)")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument("--out", required=True, metavar="FILE", help="for `seqstruct record`")
    return run_module(parser, argv, _run)


if __name__ == "__main__":
    raise SystemExit(main())
