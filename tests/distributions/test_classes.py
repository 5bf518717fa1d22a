"""What single classes have beside the common interface: other ways in, and events from what is at hand."""

from __future__ import annotations

import itertools

import pytest
import torch

from seqstruct import distributions as D
from seqstruct.ops.automata import Arc, forward, wfsa
from seqstruct.ops.semiring import LogSemiring
from tests.ops.trees.enumeration import all_trees, scores_of
from tests.randomised import draw


def test_the_likelihood_of_a_hidden_markov_model(generator):
    initial, transition, emission = (draw(generator, *s).log_softmax(-1) for s in ((3,), (3, 3), (3, 4)))
    observed = torch.tensor([[2, 0, 3, 1], [1, 1, 0, 0]])
    model = D.HiddenMarkov(initial, transition, emission, observed, lengths=torch.tensor([4, 2]))
    for row, length in enumerate((4, 2)):
        total = torch.zeros((), dtype=torch.float64)
        for path in itertools.product(range(3), repeat=length):
            score = initial[path[0]] + sum(transition[i, j] for i, j in itertools.pairwise(path))
            total += (score + sum(emission[i, v] for i, v in zip(path, observed[row], strict=False))).exp()
        torch.testing.assert_close(model.log_partition()[row].exp(), total)
    padded = torch.tensor([[2, 0, 3, 1], [1, 1, -1, 9]])
    same = D.HiddenMarkov(initial, transition, emission, padded, lengths=torch.tensor([4, 2]))
    assert torch.equal(same.log_partition(), model.log_partition())
    for wrong in (-1, 4):
        with pytest.raises(ValueError, match="expected observations from 0 to 3, got"):
            D.HiddenMarkov(initial, transition, emission, torch.tensor([2, wrong, 0]))
    everything = torch.tensor(list(itertools.product(range(4), repeat=2)))
    torch.testing.assert_close(
        D.HiddenMarkov(initial, transition, emission, everything).log_partition().exp().sum().item(), 1.0
    )


def test_an_automaton_of_ops(generator):
    weights = draw(generator, 4, 5)
    automaton = wfsa(
        3,
        [Arc(0, 1, weights[0]), Arc(1, 1, weights[1]), Arc(1, 2, weights[2]), Arc(2, 0, weights[3])],
        initial={0: 0.3, 1: -0.5},
        final={1: 0.2, 2: 0.1},
        epsilons=[Arc(2, 1, 0.7)],
        semiring=LogSemiring(),
    )
    symbols = torch.randint(5, (2, 4), generator=generator)
    found = D.WFSA.of(automaton, symbols, lengths=torch.tensor([4, 3]))
    scores = forward(automaton, symbols).scores
    torch.testing.assert_close(found.log_partition(), torch.stack([scores[0, 4], scores[1, 3]]))
    for beyond in (-1, 5):
        padded = symbols.clone()
        padded[1, 3] = beyond
        same = D.WFSA.of(automaton, padded, lengths=torch.tensor([4, 3]))
        assert torch.equal(same.log_partition(), found.log_partition())
        with pytest.raises(ValueError, match="expected symbols from 0 to 4, got"):
            D.WFSA.of(automaton, padded)
    with pytest.raises(ValueError, match="order: expected"):
        D.WFSA(*(x.new_zeros(s) for x, s in ((weights, 2), (weights, (1, 2, 2)), (weights, 2))), order=((0, 1), (1, 0)))
    with pytest.raises(ValueError, match="order: expected each pair once"):
        D.WFSA(*(x.new_zeros(s) for x, s in ((weights, 2), (weights, (1, 2, 2)), (weights, 2))), order=((0, 1), (0, 1)))


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16, torch.int32])
def test_symbols_of_any_whole_numbers(generator, kind):
    """As many bytes as there are symbols are no mask of these."""
    initial, transition, emission = (draw(generator, *s) for s in ((3,), (3, 3), (3, 5)))
    automaton = wfsa(2, [Arc(0, 0, emission[0]), Arc(0, 1, emission[1])], initial={0: 0.0}, final={1: 0.0},
                     semiring=LogSemiring())
    log_probs = draw(generator, 7, 5).log_softmax(-1)
    for symbols in ([0, 0, 3, 0, 0], [4, 1, 2, 3, 3], [2, 1]):
        symbols = torch.tensor(symbols)
        for made in (
            lambda x: D.HiddenMarkov(initial, transition, emission, x),
            lambda x: D.WFSA.of(automaton, x),
            lambda x: D.Alignment.ctc(log_probs, x, blank=4),
        ):
            assert torch.equal(made(symbols.to(kind)).log_partition(), made(symbols).log_partition())


def test_a_hidden_markov_model_is_a_chain(generator):
    """Of divergences too: its structures are those of a chain."""
    initial, transition, emission = (draw(generator, *s) for s in ((3,), (3, 3), (3, 5)))
    hidden = D.HiddenMarkov(initial, transition, emission, torch.tensor([[1, 0, 4, 2], [2, 2, 1, 3]]))
    chain = D.LinearChain(draw(generator, 2, 4, 3), draw(generator, 2, 3, 3, 3))
    same = D.LinearChain(*hidden.potentials)
    for p, q in ((hidden, chain), (chain, hidden)):
        for p_alike, q_alike in ((p, q), (same if p is hidden else p, same if q is hidden else q)):
            assert torch.equal(p.kl_divergence(q), p_alike.kl_divergence(q_alike))
            assert torch.equal(p.cross_entropy(q), p_alike.cross_entropy(q_alike))


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_arcs_that_no_tree_has_count_for_nothing(seed, single_root):
    """However little rounding leaves there, the other may exclude them."""
    generator, inf = torch.Generator().manual_seed(seed), torch.inf
    p, q = 3 * torch.randn(2, 5, 5, generator=generator, dtype=torch.float64)
    p[torch.rand(5, 5, generator=generator) < 0.5] = -inf
    trees = all_trees(4, False, single_root)
    possible = trees[scores_of(trees, p) > -inf]
    there = torch.zeros(5, 5, dtype=torch.bool)
    there[possible, torch.arange(1, 5).expand_as(possible)] = True
    q[~there] = -inf
    p, q = p.requires_grad_(), q.requires_grad_()
    found = [D.NonProjectiveTree(x, single_root=single_root) for x in (p, q)]
    own, others = (scores_of(possible, x) for x in (p, q))
    wanted = (own.softmax(0) * (own.log_softmax(0) - others.log_softmax(0))).sum()
    divergence = found[0].kl_divergence(found[1])
    torch.testing.assert_close(divergence, wanted, rtol=1e-9, atol=1e-9)
    for x, y in zip(*(torch.autograd.grad(value, (p, q)) for value in (divergence, wanted)), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-8, atol=1e-8)


def test_events_of_tags_and_heads(generator):
    chain = D.LinearChain.event(torch.tensor([1, 0, -1]), 2)
    assert chain.node.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert chain.edge.nonzero().tolist() == [[0, 1, 0]]
    arcs = D.ProjectiveTree.event(torch.tensor([2, 0, -1]))
    assert arcs.nonzero().tolist() == [[0, 2], [2, 1]]


@pytest.mark.parametrize("family", [D.ProjectiveTree, D.NonProjectiveTree])
def test_an_arc_that_is_no_number_is_named_by_its_row(generator, family):
    arcs = draw(generator, 3, 4, 4)
    arcs[2, 0, 1] = torch.nan
    for name, given in (("argmax", ()), ("topk", (2,)), ("max_marginals", ())):
        with pytest.raises(ValueError, match=r"arcs: expected numbers or -inf, got nan at \[2, 0, 1\]"):
            getattr(family(arcs), name)(*given)


@pytest.mark.parametrize("family", [D.ProjectiveTree, D.NonProjectiveTree])
def test_divergences_of_trees_with_more_roots_are_refused(generator, family):
    arcs = draw(generator, 2, 4, 4)
    any_roots, one_root = family(arcs), family(arcs, single_root=True)
    expected = any_roots.log_partition() - one_root.log_partition()
    torch.testing.assert_close(one_root.kl_divergence(any_roots), expected)
    for divergence in (any_roots.kl_divergence, any_roots.cross_entropy):
        with pytest.raises(ValueError, match="over the same structures, got .*ProjectiveTree .* other options"):
            divergence(one_root)


def test_divergences_of_other_automata_are_refused(generator):
    logits = draw(generator, 1, 1, 300)
    with pytest.raises(ValueError, match="over the same structures, got Pushdown of .* other options"):
        D.Pushdown(logits, states=1, symbols=12).kl_divergence(D.Pushdown(logits, states=10, symbols=1))


def test_shapes_are_shown():
    chain = D.LinearChain(torch.zeros(2, 1, 3, 4), torch.zeros(2, 1, 2, 4, 4), lengths=torch.tensor([[3], [1]]))
    assert chain.batch_shape == (2, 1) and chain.event_shape == ((3, 4), (2, 4, 4))
    assert chain.event_shape.edge == chain.marginals().edge.shape[2:]
    assert repr(chain) == "LinearChain(node (2, 1, 3, 4), edge (2, 1, 2, 4, 4), lengths [3, 1])"
    assert D.Categorical(torch.zeros(5)).event_shape == torch.Size([5])


def test_shapes_that_do_not_fit_are_refused():
    zeros = torch.zeros
    wrong = (
        lambda: D.LinearChain(zeros(2, 3), zeros(2, 3, 3)),
        lambda: D.LinearChain(zeros(2, 3), zeros(1, 3, 3, dtype=torch.float64)),
        lambda: D.LinearChain(zeros(2, 3), zeros(1, 3, 3), lengths=torch.tensor(3)),
        lambda: D.HiddenMarkov(zeros(3), zeros(3, 2), zeros(3, 4), torch.zeros(2, dtype=torch.long)),
        lambda: D.HiddenMarkov(zeros(3), zeros(3, 3), zeros(3, 4), torch.tensor(1)),
        lambda: D.HiddenMarkov(zeros(3), zeros(3, 3), zeros(3, 4), zeros(2)),
        lambda: D.HiddenMarkov(zeros(3), zeros(3, 3), zeros(3, 4), zeros(2) > 0),
        lambda: D.HiddenMarkov(zeros(3), zeros(3, 3), zeros(3, 0), torch.zeros(2, dtype=torch.long)),
        lambda: D.SemiMarkov(zeros(2, 3, 2, 1)),
        lambda: D.ProjectiveTree(zeros(2, 3)),
        lambda: D.ConstituencyTree(zeros(3, 3)),
        lambda: D.Pushdown(zeros(3, 9), states=1, symbols=2),
        lambda: D.WFSA(zeros(2), zeros(3, 2, 3), zeros(2)),
        lambda: D.WFSA(zeros(2), zeros(2, 2), zeros(2)),
        lambda: D.WFSA(zeros(()), zeros(3, 2, 2), zeros(2)),
        lambda: D.WFSA(zeros(2), zeros(3, 2, 2), zeros(())),
        lambda: D.Alignment(zeros(2, 3, 5), kind="ctc", may_skip=zeros(4) > 0),
        lambda: D.Alignment(zeros(2, 3, 5), kind="ctc", may_skip=zeros(3, 5) > 0),
        lambda: D.Alignment(zeros(2, 3, 5), kind="ctc", may_skip=zeros(5)),
        lambda: D.Alignment.ctc(zeros(2, 3, 5), torch.ones(3, 2, dtype=torch.long)),
        lambda: D.Alignment.ctc(zeros(3, 5), torch.tensor(1)),
        lambda: D.Alignment.ctc(zeros(5), torch.tensor([1])),
        lambda: D.Categorical(zeros(2, dtype=torch.long)),
    )
    for make in wrong:
        with pytest.raises(ValueError, match="expected"):
            make()


def test_numbers_other_than_0_and_1_are_no_structures():
    keys = D.Bernoulli(torch.zeros(4, 3))
    given = torch.tensor([[2, 0.5, 0], [-1, 0, 0], [4, 0.5, 0.5], [1, 0, 1]])
    assert keys.contains(given).tolist() == [False, False, False, True]
