"""Tests between two samples, by hand and corrected."""

from __future__ import annotations

import pytest

from seqstruct.scoring.significance import holm, welch


def test_welch_by_hand():
    # equal sizes and variances: the classical t of 4 degrees of freedom, t = 1/sqrt(2/3), p = 0.2879
    assert welch([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]) == pytest.approx(0.28786, abs=1e-5)
    assert welch([1.0], [2.0, 3.0]) is None
    assert welch([1.0, 1.0], [2.0, 2.0]) is None


@pytest.mark.filterwarnings("error")
def test_one_sample_may_not_vary():
    """t is 8.660 with two degrees of freedom."""
    assert welch([0.0, 0.0, 0.0], [2.0, 2.5, 3.0]) == pytest.approx(0.013072, abs=1e-5)


def test_holm_by_hand():
    # from the least: 4 * 0.005, 3 * 0.01, 2 * 0.03, 1 * 0.04, which is raised to the one before
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.7, 0.6]) == [1.0, 1.0] and holm([]) == []
