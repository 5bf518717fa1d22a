"""Searches: settings tried on the validation set, and random ones that a run draws for itself from its seed alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seqstruct.harness.run import PLUGIN, Run, read_json, slug, write_json
from seqstruct.harness.trainings import run_trainings

SEED = 1  # of all trainings of a search


class SearchSpace(NamedTuple):
    """learning_rate: ends of a log-uniform draw, above 0.  max_tokens: least and greatest of a uniform one, or None."""

    learning_rate: tuple[float, float]
    max_tokens: tuple[int, int] | None = None


def draw(space: SearchSpace, seed: int) -> dict[str, float]:
    """The learning rate and, where the space has it, max_tokens, by name, of the run with this seed.

    Raises ValueError if an end is not above 0 or the ends are in the wrong order.
    """
    for name, ends in space._asdict().items():
        if ends is not None and not 0 < ends[0] <= ends[1]:
            raise ValueError(f"{name}: expected ends above 0 in order, got {ends[0]} and {ends[1]}")
    generator = np.random.default_rng(seed)
    low, high = space.learning_rate
    drawn: dict[str, float] = {"learning_rate": float(np.exp(generator.uniform(math.log(low), math.log(high))))}
    if space.max_tokens is not None:
        drawn["max_tokens"] = int(generator.integers(space.max_tokens[0], space.max_tokens[1] + 1))
    return drawn


def try_settings(
    run: Run,
    data: str | PathLike,
    settings: Mapping[str, Sequence[str]],
    *,
    epochs: int,
    metric: str,
    best: Callable[[Iterable[float]], float] = max,
) -> dict[str, float]:
    """What each of several settings reaches on the validation set: the best value of a statistic over the epochs.

    settings: fairseq-train's options, by the setting's name.  best: max or min.
    They are tried once for a row and its configuration, with `SEED`, whatever the run's seed is; search.json in a
    folder among the paper's data keeps what came of them.
    Raises ValueError if a training never says the statistic, or as no finite number alone.
    """

    def make(folder: Path) -> None:
        run.progress.say(f"{run.cell.row}: {len(settings)} settings, {epochs} epochs each")
        common = [
            "--user-dir", str(PLUGIN), "--no-save", "--max-epoch", str(epochs), "--update-epoch-batch-itr", "True",
            "--seed", str(SEED), "--log-format", "json", "--log-interval", "1000", "--num-workers", "0",
            *([] if run.cell.scale == "paper" else ["--cpu"]),
        ]  # fmt: skip
        logs = run_trainings([[str(data), *options, *common] for options in settings.values()], folder, run.threads)
        found = {}
        for name, entries in zip(settings, logs, strict=True):
            values = [entry.statistics.get(f"valid_{metric}", math.nan) for entry in entries]
            if not any(map(math.isfinite, values)):
                raise ValueError(f"{run.cell.row}, {name}: expected finite values of {metric}, found none")
            found[name] = best(filter(math.isfinite, values))
        write_json(folder / "search.json", found)

    name = f"search-{slug(run.cell.row)}-{run.cell.scale}-{run.configuration_hash[:8]}"
    return read_json(run.prepared(name, make) / "search.json")
