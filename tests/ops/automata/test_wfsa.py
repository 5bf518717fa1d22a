"""Weighted automata: all paths enumerated, best paths, bad input."""

from __future__ import annotations

import itertools

import pytest
import torch

from seqstruct.ops.automata import Arc, best_path, forward, wfsa
from seqstruct.ops.semiring import LogSemiring, MaxSemiring, RealSemiring

INF = float("inf")
SEMIRINGS = [RealSemiring(), LogSemiring(), MaxSemiring()]
EACH = pytest.mark.parametrize("semiring", SEMIRINGS, ids=["real", "log", "max"])
STATES, SYMBOLS = 4, 3
ARCS = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (3, 2), (2, 0), (1, 2)]  # the last twice
EPSILONS = [(3, 1), (0, 3), (2, 3), (0, 1), (0, 3)]  # one of them twice


def draw(generator, semiring, lead=(), positive=False):
    def weights(*shape):
        drawn = torch.randn((*lead, *shape), generator=generator, dtype=torch.float64)
        return drawn.abs() if positive else drawn

    arcs = [Arc(*a, weights(SYMBOLS)) for a in ARCS]
    epsilons = [Arc(*a, weights()) for a in EPSILONS]
    initial, final = {0: weights(), 2: weights()}, {1: weights(), 2: weights()}
    return {"arcs": arcs, "epsilons": epsilons, "initial": initial, "final": final, "semiring": semiring}


def enumerate_paths(given, string, times):
    """All paths that derive a string, with their scores: (start, [(source, target, position)]) -> score."""
    paths = {}

    def extend(state, position, score, start, taken):
        if position == len(string) and state in given["final"]:
            paths[start, tuple(taken)] = times(score, given["final"][state])
        for n, arc in enumerate(given["epsilons"]):
            if arc.source == state:
                extend(arc.target, position, times(score, arc.weight), start, [*taken, (*arc[:2], None, n)])
        for n, arc in enumerate(given["arcs"] if position < len(string) else []):
            if arc.source == state:
                weight = times(score, arc.weight[string[position]])
                extend(arc.target, position + 1, weight, start, [*taken, (*arc[:2], position, n)])

    for state, weight in given["initial"].items():
        extend(state, 0, weight, state, [])
    return paths


def summed(semiring, scores):
    if not scores:
        return semiring.zero((), torch.zeros((), dtype=torch.float64))[0]
    return semiring.sum(torch.stack(scores), -1)


@EACH
def test_sum_over_all_paths(generator, semiring):
    given = draw(generator, semiring)
    automaton = wfsa(STATES, **given)
    for string in [(), (1,), (2, 0), (0, 1, 1), (2, 2, 1, 0)]:
        found = forward(automaton, torch.tensor([string], dtype=torch.long)).scores[0]
        assert found.shape == (len(string) + 1,)
        for t in range(len(string) + 1):
            paths = enumerate_paths(given, string[:t], semiring.times)
            torch.testing.assert_close(found[t], summed(semiring, list(paths.values())), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("semiring", [MaxSemiring(), LogSemiring(), RealSemiring()], ids=["max", "log", "real"])
def test_best_of_all_paths(generator, semiring):
    real = isinstance(semiring, RealSemiring)
    given = draw(generator, semiring, positive=real)
    automaton = wfsa(STATES, **given)
    strings = torch.tensor(list(itertools.product(range(SYMBOLS), repeat=3)))
    for path, string in zip(best_path(automaton, strings), strings.tolist(), strict=True):
        paths = enumerate_paths(given, string, semiring.times)
        start, taken = max(paths, key=paths.get)
        expected = paths[start, taken].log() if real else paths[start, taken]
        assert path.score == pytest.approx(expected.item(), abs=1e-12)
        assert (path.start, path.arcs) == (start, [arc[:3] for arc in taken])


@EACH
def test_families_batches_and_padding(generator, semiring):
    given = draw(generator, semiring, lead=(2,))
    automaton = wfsa(STATES, **given)
    symbols = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 1], [1, 1, 1, 1]])
    mask = torch.tensor([[0, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]]).bool()
    found = forward(automaton, symbols, mask)
    assert found.scores.shape == (2, 3, 5)
    paths = best_path(automaton, symbols, mask) if not isinstance(semiring, RealSemiring) else None
    for n in range(2):
        one = wfsa(STATES, **_member(given, n))
        for b in range(3):
            real = symbols[b : b + 1, ~mask[b]]
            alone = forward(one, real)
            torch.testing.assert_close(found.scores[n, b, -1], alone.scores[0, -1])
            if paths:
                lone = best_path(one, real)[0]
                moved = mask[b].logical_not().nonzero().flatten().tolist()
                arcs = [(i, j, None if t is None else moved[t]) for i, j, t in lone.arcs]
                assert paths[3 * n + b] == (pytest.approx(lone.score), lone.start, arcs)


def _member(given, n):
    def arcs(family):
        return [Arc(*a[:2], a.weight[n]) for a in family]

    ends = {k: {s: w[n] for s, w in given[k].items()} for k in ("initial", "final")}
    return {**ends, "arcs": arcs(given["arcs"]), "epsilons": arcs(given["epsilons"]), "semiring": given["semiring"]}


@EACH
def test_symbols_are_positions_if_none_are_named(generator, semiring):
    automaton = wfsa(STATES, **draw(generator, semiring, lead=(2,)))
    named = forward(automaton, torch.arange(SYMBOLS).unsqueeze(0))
    unnamed = forward(automaton)
    torch.testing.assert_close(unnamed.scores, named.scores.squeeze(1))
    if not isinstance(semiring, RealSemiring):
        both = best_path(automaton), best_path(automaton, torch.arange(SYMBOLS).unsqueeze(0))
        assert both[0] == both[1]


@EACH
def test_a_prefix_is_gone_on_from(generator, semiring):
    automaton = wfsa(STATES, **draw(generator, semiring))
    symbols = torch.tensor([[0, 1, 2, 1, 0]])
    whole = forward(automaton, symbols)
    rest = forward(automaton, symbols[:, 2:], states=whole.states[:, 2])
    torch.testing.assert_close(rest.states, whole.states[:, 2:])
    torch.testing.assert_close(rest.scores, whole.scores[:, 2:])


@pytest.mark.parametrize("semiring", [RealSemiring(), LogSemiring()], ids=["real", "log"])
def test_gradcheck(generator, semiring):
    weight = torch.randn(3, SYMBOLS, generator=generator, dtype=torch.float64).requires_grad_()
    other = torch.randn(2, generator=generator, dtype=torch.float64).requires_grad_()

    def scores(weight, other):
        arcs = [Arc(0, 1, weight[0]), Arc(1, 1, weight[1]), Arc(2, 1, weight[2])]
        automaton = wfsa(3, arcs, initial={0: other[0]}, final={1: 1.0, 0: 0.5}, epsilons=[Arc(0, 2, other[1])],
                         semiring=semiring)
        return forward(automaton, torch.tensor([[0, 2, 1]])).scores[:, 1:]

    assert torch.autograd.gradcheck(scores, (weight, other))


def test_no_path():
    arcs = [Arc(0, 1, torch.tensor([0.0, -INF]))]
    automaton = wfsa(2, arcs, initial={0: 0.0}, final={1: 0.0}, semiring=MaxSemiring())
    assert forward(automaton, torch.tensor([[1], [0]])).scores.tolist() == [[-INF, -INF], [-INF, 0.0]]
    assert best_path(automaton, torch.tensor([[1], [0]])) == [(-INF, -1, []), (0.0, 0, [(0, 1, 0)])]
    assert best_path(automaton, torch.zeros(1, 0, dtype=torch.long)) == [(-INF, -1, [])]


def test_bytes_are_symbols_not_a_mask(generator):
    """Where strings are as many as automata, and as long as there are symbols."""
    automaton = wfsa(STATES, **draw(generator, LogSemiring(), lead=(2,)))
    symbols = torch.tensor([[0, 2, 1], [1, 0, 2]])
    expected = forward(automaton, symbols)
    for kind in (torch.uint8, torch.int16, torch.int32):
        for found, x in zip(forward(automaton, symbols.to(kind)), expected, strict=True):
            assert torch.equal(found, x)
    assert best_path(automaton, symbols.to(torch.uint8)) == best_path(automaton, symbols)


def test_bad_input():
    weight = torch.ones(2)
    ends = {"initial": {0: 1.0}, "final": {1: 1.0}, "semiring": RealSemiring()}
    with pytest.raises(ValueError, match="epsilon arcs form a cycle of states: 1 -> 3 -> 2 -> 1"):
        epsilons = [Arc(0, 1, 1.0), Arc(1, 3, 1.0), Arc(3, 2, 1.0), Arc(2, 1, 1.0)]
        wfsa(4, [Arc(0, 1, weight)], epsilons=epsilons, **ends)
    with pytest.raises(ValueError, match="cycle of states: 1 -> 1"):
        wfsa(2, [Arc(0, 1, weight)], epsilons=[Arc(1, 1, 0.5)], **ends)
    with pytest.raises(ValueError, match=r"arc 1: state 2 is out of range, expected 0 .. 1"):
        wfsa(2, [Arc(0, 1, weight), Arc(1, 2, weight)], **ends)
    with pytest.raises(ValueError, match=r"epsilon arc 0: state -1 is out of range"):
        wfsa(2, [Arc(0, 1, weight)], epsilons=[Arc(0, -1, 1.0)], **ends)
    with pytest.raises(ValueError, match="final: state 1 is out of range, expected 0 .. 0"):
        wfsa(1, [Arc(0, 0, weight)], **ends)
    with pytest.raises(ValueError, match="a weight for each symbol, got numbers alone"):
        wfsa(2, [Arc(0, 1, 1.0)], **ends)
    automaton = wfsa(2, [Arc(0, 1, 3 * weight), Arc(0, 1, -weight)], **ends)
    with pytest.raises(ValueError, match=r"symbol 2 of row 1, position 0 is out of range, expected 0 .. 1"):
        forward(automaton, torch.tensor([[0, 1], [2, 0]]))
    with pytest.raises(ValueError, match="expected symbols B T"):
        forward(automaton, torch.tensor([0, 1]))
    for kind in (torch.bool, torch.float32):
        with pytest.raises(ValueError, match="expected symbols .* of whole numbers"):
            forward(automaton, torch.tensor([[0, 1], [1, 0]]).to(kind))
    with pytest.raises(ValueError, match="weights of 0 or more"):
        best_path(automaton, torch.tensor([[0, 1]]))
    with pytest.raises(ValueError, match="padding_mask: expected 2 x 2, got 2 x 3"):
        forward(automaton, padding_mask=torch.zeros(2, 3).bool())
    with pytest.raises(ValueError, match="padding_mask: expected 1 x 2, got 1 x 3"):
        forward(automaton, torch.tensor([[0, 1]]), torch.zeros(1, 3).bool())


def test_symbols_in_their_order_may_be_left_out(generator):
    """Without symbols a mask says, string by string, which of all V symbols are there."""
    arcs = [Arc(i, j, torch.randn(4, generator=generator).double()) for i in (0, 1) for j in (0, 1)]
    automaton = wfsa(2, arcs, epsilons=[Arc(0, 1, -0.5)], initial={0: 0.0}, final={1: 0.3, 0: -1.0},
                     semiring=LogSemiring())
    mask = torch.tensor([[False, True, False, False], [True, True, True, True], [False] * 4])
    found, paths = forward(automaton, padding_mask=mask).scores, best_path(automaton, padding_mask=mask)
    for row, (kept, path) in enumerate(zip((~mask).unbind(0), paths, strict=True)):
        symbols = kept.nonzero().T
        torch.testing.assert_close(found[row, -1], forward(automaton, symbols).scores[0, -1])
        assert path.score == pytest.approx(best_path(automaton, symbols)[0].score)
