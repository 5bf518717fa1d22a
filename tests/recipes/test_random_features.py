"""The recipe of random features alone: what it measures is what the equations say."""

from __future__ import annotations

import inspect
import json
import math
from pathlib import Path

import pytest
import torch

from seqstruct.harness.launch import load_recipe

FOLDER = Path(__file__).resolve().parents[2] / "recipes" / "peng_thesis"
RECIPE = load_recipe(FOLDER / "random_features.py")
MODULE = inspect.getmodule(type(RECIPE))


@pytest.mark.parametrize("z", [0.5, 2.0])
def test_the_variance_is_that_of_equation_a1(z: float, generator: torch.Generator) -> None:
    found = MODULE.variance(z, 4000, generator)
    wanted = (1 - math.exp(-(z**2))) ** 2 / (2 * MODULE.FREQUENCIES)
    assert found == pytest.approx(wanted, rel=0.1)  # of 4,000 draws; the deviation of a variance is 2 in 100


def test_more_frequencies_and_a_smaller_sigma_err_less(generator: torch.Generator) -> None:
    errors = [MODULE.distance(True, sigma, count, generator) for sigma, count in ((1.0, 1024), (1.0, 64), (2.0, 64))]
    assert errors == sorted(errors)


def test_every_row_has_a_place_among_the_published_figures() -> None:
    tables = json.loads((FOLDER / "paper.json").read_text("utf-8"))["tables"]
    rows = {entry["row"] for name in ("A.1-variance", "A.1-unit-norm") for entry in tables[name]["rows"]}
    assert rows == set(RECIPE.rows)
