"""Random features alone (Peng 2022, appendix A.1): the variance of equation A.1, and unit norm against equation 4.10.

Rows "z = ..." hold the variance of phi(x) . phi(y) over draws of 64 frequencies, at |x - y| / sigma = z, beside what
the equation gives.  The other rows hold how far random feature attention with 64 or 1,024 frequencies is from the
attention that it estimates, the median over outputs in units of the exact outputs' root mean square, for normal queries
and keys of size 64: scaled to norm 1, with sigma 1 or 2, or as they are, with the factors of equation 4.10 and sigma
64^-1/4, as in scaled dot-product attention.  Where the kernel is far below 1, as there, the noise of 1/sqrt(2 D) hides
it.  Seeds draw other numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.ops.feature_maps import GaussianMap
from seqstruct.ops.linear_attention import empty_memory, read, schedule, write
from seqstruct.ops.random_features import gaussian_features

FREQUENCIES, DIM, KEYS = 64, 64, 200
DISTANCES = ("0.5", "1", "1.5", "2", "3")
DRAWS = {"smoke": 200, "small": 20000, "paper": 200000}
WAYS = {"unit norm, sigma 1": (True, 1.0), "unit norm, sigma 2": (True, 2.0), "equation 4.10": (False, DIM**-0.25)}


class RandomFeatures(Recipe):
    """Variances and errors; no training."""

    paper = "peng_thesis"
    table = "A.1-variance"
    family = "random features alone"
    rows = (
        *(f"z = {z}" for z in DISTANCES),
        *(f"{way}, {frequencies} frequencies" for way in WAYS for frequencies in (64, 1024)),
    )
    smoke_rows = ("z = 1", "unit norm, sigma 1, 64 frequencies")
    seeds = {"smoke": 1, "small": 3, "paper": 3}
    licence = "none needed, inputs are random"

    def baselines(self, scale: str) -> Mapping[str, str]:
        ways = tuple(WAYS)[:1] if scale == "smoke" else WAYS
        return {f"{way}, mean of the values": f"{way}, 64 frequencies" for way in ways}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        """How far the mean of all values is from the exact output."""
        value = distance(*WAYS[row.rsplit(", ", 1)[0]], 0, torch.Generator().manual_seed(run.cell.seed))
        return [Measurement("median_output_error", value, "exact output", table="A.1-unit-norm")]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {"draws": DRAWS[cell.scale], "frequencies": FREQUENCIES, "dim": DIM, "keys": KEYS}

    def dataset(self, cell: Cell) -> str:
        return f"{DRAWS[cell.scale]} draws" if cell.row.startswith("z") else f"{KEYS} normal keys and queries"

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate(0.1 if cell.scale != "paper" else 0.5, 0.1)

    def prepare(self, run: Run) -> Path:
        return run.prepared("random-inputs", lambda folder: None)

    def train(self, run: Run, data: Path) -> Path:
        return data

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        generator = torch.Generator().manual_seed(run.cell.seed)
        if run.cell.row.startswith("z"):
            value = variance(float(run.cell.row.split("= ")[1]), DRAWS[run.cell.scale], generator)
            return [Measurement("variance", value, "squared kernel")]
        way, frequencies = run.cell.row.removesuffix(" frequencies").rsplit(", ", 1)
        value = distance(*WAYS[way], int(frequencies), generator)
        return [Measurement("median_output_error", value, "exact output", table="A.1-unit-norm")]


def variance(z: float, draws: int, generator: torch.Generator) -> float:
    """Of phi(x) . phi(y) for sigma 1 and |x - y| = z."""
    x = torch.randn(DIM, generator=generator, dtype=torch.float64)
    step = torch.randn(DIM, generator=generator, dtype=torch.float64)
    both = torch.stack([x, x + z * step / step.norm()])
    found = []
    for count in _batches(draws, 500):
        features = gaussian_features(
            both.expand(1, count, 2, DIM),
            torch.randn(count, FREQUENCIES, DIM, generator=generator, dtype=torch.float64),
        )
        found.append((features[0, :, 0] * features[0, :, 1]).sum(-1))
    return float(torch.cat(found).var())


def distance(normed: bool, sigma: float, frequencies: int, generator: torch.Generator) -> float:
    """The median error over the root mean square of the exact output, at 8 heads with draws of their own.

    Without frequencies, that of the mean of the values.
    """
    query, key, value = (torch.randn(1, 8, KEYS, DIM, generator=generator, dtype=torch.float64) for _ in range(3))
    estimate = value.mean(2, keepdim=True)
    if frequencies:
        estimate = _estimate(query, key, value, normed, sigma, frequencies, generator)
    if normed:
        query, key = (torch.nn.functional.normalize(x, dim=-1) for x in (query, key))
    exact = (sigma**2 * query @ key.mT).softmax(-1) @ value
    return float((estimate - exact).abs().median() / exact.square().mean().sqrt())


def _estimate(query: Tensor, key: Tensor, value: Tensor, normed: bool, sigma: float, frequencies: int,
              generator: torch.Generator) -> Tensor:  # fmt: skip
    rows = torch.full((8, DIM), sigma, dtype=torch.float64)
    projection = torch.randn(8, frequencies, DIM, generator=generator, dtype=torch.float64) * sigma
    features = GaussianMap(projection, normed, rows)
    state = empty_memory(1, 8, 2 * frequencies, DIM, value)
    made, log_scale = features(key)
    plan = schedule(state.level, log_scale, None)
    made = made if plan is None else made * plan.weight.unsqueeze(-1)
    return read(write(state, made, value, plan), features(query)[0])[0]


def _batches(total: int, most: int) -> list[int]:
    return [min(most, total - start) for start in range(0, total, most)]


recipe = RandomFeatures()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
