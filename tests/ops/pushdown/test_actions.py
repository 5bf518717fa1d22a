"""Expected actions of the nondeterministic stack, against every single run."""

from __future__ import annotations

import math

import pytest
import torch

from seqstruct.ops.pushdown import expected_actions
from tests.ops.pushdown.enumeration import every_run
from tests.ops.pushdown.test_pushdown import INF, draw


def by_enumeration(logits, Q, S):
    """T 3: of the runs of the first t steps, the share of those whose last step pushes, pops, replaces."""
    rows = []
    for t in range(1, len(logits) + 1):
        runs = every_run(logits[:t], Q, S)
        best = max(weight for weight, _ in runs)
        total = math.fsum(math.exp(weight - best) for weight, _ in runs)
        kinds = ("push", "pop", "replace")
        shares = [[math.exp(w - best) / total for w, past in runs if past[-1][0] == kind] for kind in kinds]
        rows.append([math.fsum(share) for share in shares])
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize(("T", "Q", "S"), [(6, 1, 2), (4, 2, 2), (3, 3, 2), (5, 2, 1), (1, 2, 3), (7, 1, 1)])
def test_shares_of_all_runs(generator, T, Q, S):
    logits, _, _ = draw(generator, 3, T, Q, S, 1, spread=2.0)
    logits.view(3, T, Q * S, -1)[1:, T // 2 :, :, 2 * Q * S :] += 4.0  # so that much is popped
    found = expected_actions(logits, states=Q, symbols=S)
    for row in range(3):
        torch.testing.assert_close(found[row], by_enumeration(logits[row], Q, S), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("spread", [300.0, 3000.0, 1e5])
def test_what_was_all_but_impossible_may_become_likely(generator, spread):
    """Shares before a step far below e^-745 that the step's own weights make up for."""
    logits, _, _ = draw(generator, 4, 4, 2, 2, 1, spread=spread)
    for t in range(3):  # what is favoured at one step is where the next has nothing to offer
        table = logits[:, t].view(4, 4, 10)
        table[:, :, t % 4] += 4 * spread
        logits[:, t + 1].view(4, 4, 10)[:, t % 4] -= 9 * spread
    found = expected_actions(logits, states=2, symbols=2)
    for row in range(4):
        torch.testing.assert_close(found[row], by_enumeration(logits[row], 2, 2), rtol=1e-8, atol=1e-12)


def test_a_run_of_small_weight_is_all_that_goes_on():
    logits = torch.full((1, 2, 10), -INF, dtype=torch.float64)  # one state, two symbols: push, replace, pop of each
    logits = logits.view(1, 2, 2, 5)
    logits[0, 0, 0, 0], logits[0, 0, 0, 3] = 0.0, -800.0  # push 0, or replace the bottom by 1
    logits[0, 1, 1, 3], logits[0, 1, 1, 0], logits[0, 1, 0, 4] = 2.0, 1.0, -801.0
    found = expected_actions(logits.flatten(2), states=1, symbols=2)
    expected = torch.tensor([-799.0, -801.0, -798.0], dtype=torch.float64).softmax(0)  # push, pop, replace
    torch.testing.assert_close(found[0, 1], expected, rtol=1e-12, atol=0)


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
