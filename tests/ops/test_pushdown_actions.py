"""Expected actions of the nondeterministic stack, against every single run."""

from __future__ import annotations

import math

import pytest
import torch

from seqstruct.ops.pushdown_actions import expected_actions
from tests.ops.test_pushdown import INF, draw
from tests.ops.test_pushdown_viterbi import enumerate_runs


def by_enumeration(logits, Q, S):
    """T 3: of the runs of the first t steps, the share of those whose last step pushes, pops, replaces."""
    rows = []
    for t in range(1, len(logits) + 1):
        runs = enumerate_runs(logits[:t], Q, S)
        total = math.fsum(math.exp(weight) for weight, _ in runs)
        kinds = ("push", "pop", "replace")
        rows.append([math.fsum(math.exp(w) for w, past in runs if past[-1][0] == kind) / total for kind in kinds])
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize(("T", "Q", "S"), [(6, 1, 2), (4, 2, 2), (3, 3, 2), (5, 2, 1), (1, 2, 3), (7, 1, 1)])
def test_shares_of_all_runs(generator, T, Q, S):
    logits, _, _ = draw(generator, 3, T, Q, S, 1, spread=2.0)
    logits.view(3, T, Q * S, -1)[1:, T // 2 :, :, 2 * Q * S :] += 4.0  # so that much is popped
    found = expected_actions(logits, states=Q, symbols=S)
    for row in range(3):
        torch.testing.assert_close(found[row], by_enumeration(logits[row], Q, S), rtol=1e-10, atol=1e-12)


def test_extreme_and_impossible_weights():
    logits = torch.full((1, 3, 3), -INF, dtype=torch.float64)  # push, replace, pop
    logits[0, 0, 0], logits[0, 1, 2], logits[0, 2, 1] = -900.0, 700.0, 3.0
    logits[0, 2, 2] = 900.0  # the bottom alone is left: it cannot be popped
    found = expected_actions(logits, states=1, symbols=1)
    assert found.tolist() == [[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]
    logits[0, 2, 1] = -INF
    assert expected_actions(logits, states=1, symbols=1)[0, 2].tolist() == [0, 0, 0]


def test_lengths_and_shapes():
    assert expected_actions(torch.zeros(5, 0, 3), states=1, symbols=1).shape == (5, 0, 3)
    assert expected_actions(torch.zeros(1, 1, 3), states=1, symbols=1).tolist() == [[[0.5, 0.0, 0.5]]]
    with pytest.raises(ValueError, match=r"expected logits B T 12 for 2 states and 1 symbols, got \(1, 1, 3\)"):
        expected_actions(torch.zeros(1, 1, 3), states=2, symbols=1)
