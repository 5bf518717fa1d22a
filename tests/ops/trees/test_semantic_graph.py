"""The best semantic graph, against all graphs; the matching within it, against scipy's and by trying all."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from seqstruct.ops.trees.semantic_graph import best_graph, best_matching, graph_parts


def score_of(chosen, heads, arcs, labels):
    """Of one graph, chosen N N."""
    total = sum(heads[h] for h in range(len(heads)) if (chosen[h] >= 0).any())
    return total + sum(arcs[h, m] + labels[h, m, chosen[h, m]] for h, m in (chosen >= 0).nonzero().tolist())


def best_of_all(heads, arcs, labels, possible, deterministic):
    """The largest score over all graphs, head by head since heads do not interact."""
    N, L = len(heads), labels.size(-1)
    total = 0.0
    for h in range(N):
        best = 0.0
        for row in itertools.product(range(-1, L), repeat=N):
            used = [label for label in row if label >= 0]
            if any(not possible[h, m, label] for m, label in enumerate(row) if label >= 0) or not used:
                continue
            if any(deterministic[label] and used.count(label) > 1 for label in used):
                continue
            value = heads[h] + sum(arcs[h, m] + labels[h, m, label] for m, label in enumerate(row) if label >= 0)
            best = max(best, float(value))
        total += best
    return total


@pytest.mark.parametrize("deterministic", [[False, False, False], [True, False, True], [True, True, True]])
def test_score_is_the_largest_of_all_graphs(deterministic):
    generator = torch.Generator().manual_seed(3)
    constraint = torch.tensor(deterministic)
    B, N, L = 13, 3, 3
    heads, arcs = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((B, N), (B, N, N)))
    labels = torch.randn(B, N, N, L, generator=generator, dtype=torch.float64)
    possible = torch.rand(B, N, N, L, generator=generator) < 0.8
    possible &= ~torch.eye(N, dtype=torch.bool).unsqueeze(-1)
    chosen = best_graph(heads, arcs, labels, possible, constraint)
    for b in range(B):
        found = score_of(chosen[b], heads[b], arcs[b], labels[b])
        expected = best_of_all(heads[b], arcs[b], labels[b], possible[b], deterministic)
        assert float(found) == pytest.approx(expected)
        for h, m in (chosen[b] >= 0).nonzero().tolist():
            assert possible[b, h, m, chosen[b, h, m]]
        for h in range(N):
            used = [label for label in chosen[b, h].tolist() if label >= 0 and deterministic[label]]
            assert len(used) == len(set(used))


def test_parts_of_a_graph():
    chosen = torch.tensor([[[-1, 2], [0, -1]], [[-1, -1], [-1, -1]]])
    heads, arcs, labeled = graph_parts(chosen, 3)
    assert heads.tolist() == [[1, 1], [0, 0]]
    assert arcs.tolist() == [[[0, 1], [1, 0]], [[0, 0], [0, 0]]]
    assert labeled[0, 0, 1].tolist() == [0, 0, 1] and labeled.sum() == 2


def test_nothing_to_choose_from():
    empty = best_graph(torch.ones(2, 1), torch.ones(2, 1, 1), torch.ones(2, 1, 1, 0), torch.ones(2, 1, 1, 0).bool())
    assert empty.tolist() == [[[-1]], [[-1]]]
    nothing = torch.zeros(2, 3, 3, 2, dtype=torch.bool)
    chosen = best_graph(torch.ones(2, 3), torch.ones(2, 3, 3), torch.ones(2, 3, 3, 2), nothing, torch.ones(2).bool())
    assert (chosen == -1).all()
    with pytest.raises(ValueError, match="expected heads \\(2, 3\\)"):
        best_graph(torch.ones(2, 2), torch.ones(2, 3, 3), torch.ones(2, 3, 3, 2), nothing)


@pytest.mark.parametrize("n, m", [(0, 0), (1, 1), (1, 7), (5, 1), (5, 7), (7, 5), (13, 13)])
def test_sum_of_a_matching_is_the_largest(n, m):
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
