"""Random search: what a run draws for itself, decided by its seed alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


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
