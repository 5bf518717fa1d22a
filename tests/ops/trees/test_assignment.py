"""The best matching, against scipy's and by trying all."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from seqstruct.ops.trees.assignment import best_matching


@pytest.mark.parametrize("n, m", [(0, 0), (1, 1), (1, 7), (5, 1), (5, 7), (7, 5), (13, 13)])
def test_sum_is_the_largest(n, m):
    generator = np.random.default_rng(n * 31 + m)
    for _ in range(20):
        gains = generator.normal(size=(n, m)).round(1)
        taken = best_matching(gains.tolist())
        assert len(taken) == n
        columns = [column for column in taken if column >= 0]
        assert len(set(columns)) == len(columns)
        found = sum(gains[row, column] for row, column in enumerate(taken) if column >= 0)
        rows, best = linear_sum_assignment(np.maximum(gains, 0), maximize=True)
        assert found == pytest.approx(np.maximum(gains, 0)[rows, best].sum())
        assert all(gains[row, column] > 0 for row, column in enumerate(taken) if column >= 0)
