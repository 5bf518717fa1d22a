"""Losses of trees and graphs against all structures, and encoders that do not see padding."""

import itertools

import pytest
import torch

from seqstruct.layers.parsing import (
    PairScorer,
    TokenEncoder,
    graph_hinge,
    graph_score,
    possible_labels,
    tree_hinge,
    tree_likelihood_loss,
)
from tests.ops.trees.enumeration import all_trees, scores_of


def drawn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_tree_losses_against_all_trees(n):
    trees = all_trees(n, True, False)
    arcs = drawn(3, n + 1, n + 1)
    gold = trees[torch.tensor([0, len(trees) // 2, len(trees) - 1])]
    mask = torch.zeros(3, n + 1, dtype=torch.bool)
    for b in range(3):
        scores = scores_of(trees, arcs[b])
        wrong = (trees != gold[b]).sum(1)
        right = scores_of(gold[b : b + 1], arcs[b])[0]
        assert tree_hinge(arcs, gold, mask)[b] == pytest.approx(float((scores + wrong).max() - right))
        likelihood = tree_likelihood_loss(arcs, gold, mask)[b]
        assert float(likelihood) == pytest.approx(float(scores.logsumexp(0) - right))


def test_tree_losses_do_not_see_padding():
    arcs, gold = drawn(1, 4, 4), torch.tensor([[2, 0, 2]])
    wide = drawn(1, 6, 6, seed=2)
    wide[:, :4, :4] = arcs
    for loss in (tree_hinge, tree_likelihood_loss):
        short = loss(arcs, gold, torch.zeros(1, 4, dtype=torch.bool))
        mask = torch.tensor([[False] * 4 + [True] * 2])
        torch.testing.assert_close(loss(wide, torch.cat([gold, torch.full((1, 2), -1)], 1), mask), short)


def test_a_gold_tree_that_is_far_ahead_has_no_hinge_loss():
    gold = torch.tensor([[2, 0]])
    arcs = torch.zeros(1, 3, 3, dtype=torch.float64)
    arcs[0, 2, 1] = arcs[0, 0, 2] = 5.0
    assert tree_hinge(arcs, gold, torch.zeros(1, 3, dtype=torch.bool)).item() == 0


def test_graph_hinge_against_all_graphs():
    N, L = 3, 3
    heads, arcs, labels = drawn(1, N), drawn(1, N, N, seed=2), drawn(1, N, N, L, seed=3)
    possible = possible_labels(torch.zeros(1, N, dtype=torch.bool), L)
    gold = torch.full((1, N, N), -1)
    gold[0, 0, 1], gold[0, 1, 2] = 0, 2
    cells = [(h, m) for h in range(N) for m in range(N) if possible[0, h, m].any()]
    worst = -torch.inf
    for choice in itertools.product(range(-1, L), repeat=len(cells)):
        graph = torch.full((1, N, N), -1)
        for (h, m), label in zip(cells, choice, strict=True):
            graph[0, h, m] = label
        if any(label >= 0 and not possible[0, h, m, label] for (h, m), label in zip(cells, choice, strict=True)):
            continue
        extra = ((graph >= 0) & (graph != gold)).sum()
        missing = ((gold >= 0) & (graph != gold)).sum()
        worst = max(worst, float(graph_score(heads, arcs, labels, graph) + 0.4 * extra + 0.6 * missing))
    right = float(graph_score(heads, arcs, labels, gold))
    assert graph_hinge(heads, arcs, labels, possible, gold).item() == pytest.approx(max(worst - right, 0))


def test_labels_that_may_be_taken():
    possible = possible_labels(torch.tensor([[False, False, False, True]]), 3)[0]
    assert possible[0, :, 0].tolist() == [False, True, True, False]
    assert not possible[0, :, 1:].any() and not possible[1:, :, 0].any()
    assert possible[1:, :, 1].tolist() == [[False, False, True, False], [False, True, False, False], [False] * 4]


def test_the_pair_scorer_is_a_perceptron_over_pairs():
    scorer = PairScorer(5, 7, 2).double()
    states = drawn(2, 3, 5)
    weight = torch.cat([scorer.head.weight, scorer.dependent.weight], 1)
    for h, m in itertools.product(range(3), repeat=2):
        pair = torch.cat([states[:, h], states[:, m]], -1)
        expected = scorer.output(torch.tanh(pair @ weight.T + scorer.head.bias))
        torch.testing.assert_close(scorer(states)[:, h, m], expected)


def test_the_encoder_does_not_see_padding():
    torch.manual_seed(1)
    encoder = TokenEncoder((9, 9, 9), (3, 0, 2), 1, hidden_size=4, layers=2).eval()
    tokens = torch.randint(4, 9, (2, 3, 6), generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    states = encoder(tokens, mask)
    alone = encoder(tokens[1:, :, :4], mask[1:, :4])
    torch.testing.assert_close(states[1, :4], alone[0])
    assert not states[1, 4:].any()
    other = tokens.clone()
    other[:, 1] = 4
    assert torch.equal(encoder(other, mask), states)  # lemmas are left out
