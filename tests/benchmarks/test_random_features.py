"""Random features alone: what is measured is what the equations say."""

from __future__ import annotations

import math

import pytest
import torch

from seqstruct.benchmarks import random_features
from seqstruct.harness import measurements


@pytest.mark.parametrize("z", [0.5, 2.0])
def test_the_variance_is_that_of_equation_a1(z: float, generator: torch.Generator) -> None:
    found = random_features.variance(z, 4000, generator)
    wanted = (1 - math.exp(-(z**2))) ** 2 / (2 * random_features.FREQUENCIES)
    assert found == pytest.approx(wanted, rel=0.1)  # of 4,000 draws; the deviation of a variance is 2 in 100


def test_more_frequencies_and_a_smaller_sigma_err_less(generator: torch.Generator) -> None:
    errors = [random_features.distance(True, sigma, count, generator)
              for sigma, count in ((1.0, 1024), (1.0, 64), (2.0, 64))]
    assert errors == sorted(errors)


def test_the_command_writes_a_row_or_says_why_not(tmp_path, capsys) -> None:
    out = tmp_path / "found.json"
    for row, metric in (("z = 1.5", "variance"), ("equation 4.10, 64 frequencies", "median_output_error"),
                        ("unit norm, sigma 2, mean of the values", "median_output_error")):
        assert random_features.main([row, "--draws", "50", "--out", str(out)]) == 0
        (found,) = measurements.read(tmp_path, ["found.json"])
        assert (found.metric, found.value > 0) == (metric, True)
    for words in (["z = x"], ["unit norm, 64 frequencies"], ["z = 1", "--draws", "1"]):
        assert random_features.main([*words, "--out", str(tmp_path / "none.json")]) == 1
        assert 'expected "z = Z" or "WAY, N frequencies"' in capsys.readouterr().err
    assert not (tmp_path / "none.json").exists()
