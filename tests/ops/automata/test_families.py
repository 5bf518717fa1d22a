"""Each recurrence against its automaton: the networks of chapter 6 of Peng (2022) as plain loops over words."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch.nn import functional as F

from seqstruct.ops.automata import (
    affine_automaton,
    best_path,
    forward,
    interpolated_automaton,
    pattern_automaton,
    rational_recurrence,
    window_automaton,
)
from seqstruct.ops.semiring import LogSemiring, MaxSemiring, RealSemiring

B, T, V, C, D = 2, 7, 3, 5, 4
REAL = RealSemiring()


class Gate(NamedTuple):
    """weight: D C of a word, bias: D, previous: D C of the word before, or None."""

    weight: torch.Tensor
    bias: torch.Tensor
    previous: torch.Tensor | None


@pytest.fixture()
def draw(generator):
    return lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.fixture()
def gate(draw):
    return lambda previous=False: Gate(draw(D, C), draw(D), draw(D, C) if previous else None)


@pytest.fixture()
def symbols(generator):
    return torch.randint(V, (B, T), generator=generator)


def read(gate, now, earlier=None):
    found = now @ gate.weight.T + gate.bias
    return found if earlier is None else found + earlier @ gate.previous.T


def by_symbol(gate, vectors):
    """D V."""
    return read(gate, vectors).T


def by_pair(gate, vectors):
    """D V V, [a, b] of word b after a."""
    return read(gate, vectors, vectors.unsqueeze(1)).movedim(-1, 0)


def loop(step, words, initial=None):
    """c_0 .. c_T, B T+1 d, of c_t = step(c_{t-1}, x_t)."""
    states = [torch.zeros(len(words), D, dtype=words.dtype) if initial is None else initial.expand(len(words), D)]
    for word in words.unbind(1):
        states.append(step(states[-1], word))
    return torch.stack(states, 1)


def loop_of_pairs(step, words):
    """As `loop`, from the second word on, of c_t = step(c_{t-1}, x_{t-1}, x_t)."""
    states = [torch.zeros(len(words), D, dtype=words.dtype)]
    for earlier, now in zip(words.unbind(1), words.unbind(1)[1:], strict=False):
        states.append(step(states[-1], earlier, now))
    return torch.stack(states, 1)


def assert_derived(automaton, symbols, states):
    """The scores d B T+1 of all prefixes are the states B T+1 d."""
    torch.testing.assert_close(forward(automaton, symbols).scores.movedim(0, -1), states, rtol=0, atol=1e-12)


def features(x):
    """B T d as B d T: an automaton for each row and feature, a symbol for each position."""
    return x.transpose(1, 2)


@pytest.mark.parametrize("automaton", ["B", "B_max_plus", "C", "F"])
def test_rational_recurrences(draw, automaton):
    J = 2 if automaton in ("C", "F") else 1
    projected = draw(B, T, 2 * J, D)
    logits, inputs = projected[:, :, ::2].unbind(2), projected[:, :, 1::2].unbind(2)
    extra = {}
    if automaton == "B_max_plus":
        decays = [features(F.logsigmoid(x)) for x in logits]
        derived = pattern_automaton([features(inputs[0])], decays, MaxSemiring())
    else:
        decays = [features(x.sigmoid()) for x in logits]
        weights = [features((1 - x.sigmoid()) * z) for x, z in zip(logits, inputs, strict=True)]
        if automaton == "F":
            extra = {"final_logits": draw(2, D), "epsilon_logits": draw(D)}
            finals = list(extra["final_logits"].sigmoid())
            derived = interpolated_automaton(weights, decays, extra["epsilon_logits"].sigmoid(), finals, REAL)
        else:
            derived = pattern_automaton(weights, decays, REAL)
    scores = rational_recurrence(automaton, projected, **extra).scores
    torch.testing.assert_close(features(forward(derived).scores[..., 1:]), scores, rtol=0, atol=1e-12)


def test_sru_and_t_rnn(draw, gate, symbols):
    vectors, z, f = draw(V, C), gate(), gate()
    expected = loop(lambda c, x: read(f, x).sigmoid() * c + (1 - read(f, x).sigmoid()) * read(z, x), vectors[symbols])
    decays = by_symbol(f, vectors).sigmoid()
    assert_derived(pattern_automaton([(1 - decays) * by_symbol(z, vectors)], [decays], REAL), symbols, expected)


def test_scrn(draw, gate, symbols):
    vectors, z = draw(V, C), gate()
    assert_derived(pattern_automaton([0.05 * by_symbol(z, vectors)], [0.95], REAL), symbols,
                   loop(lambda c, x: 0.95 * c + 0.05 * read(z, x), vectors[symbols]))


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_rcnn(draw, gate, symbols, order, constant):
    vectors, candidates, decay = draw(V, C), [gate() for _ in range(order)], 0.3 if constant else gate()

    def step(states, x):
        weight = decay if constant else read(decay, x).sigmoid()
        inputs = [(1 - weight) * read(w, x) for w in candidates]
        before = [torch.ones_like(states[0]), *states[:-1]]
        return [weight * c + b * u for c, b, u in zip(states, before, inputs, strict=True)]

    states = [torch.zeros(B, D, dtype=torch.float64)] * order
    expected = [states[-1]]
    for x in vectors[symbols].unbind(1):
        states = step(states, x)
        expected.append(states[-1])
    weight = decay if constant else by_symbol(decay, vectors).sigmoid()
    inputs = [(1 - weight) * by_symbol(w, vectors) for w in candidates]
    assert_derived(pattern_automaton(inputs, [weight] * order, REAL), symbols, torch.stack(expected, 1))


def test_window_of_two_words(draw, gate, symbols):
    vectors, z, i, f, plain = draw(V, C), gate(True), gate(True), gate(True), gate()
    words, decays, of_word = vectors[symbols], by_pair(f, vectors).sigmoid(), by_symbol(plain, vectors).unsqueeze(1)
    networks = [
        ((1 - decays) * by_pair(z, vectors).tanh(),  # QRNN, T-LSTM, T-GRU
         lambda c, a, x: torch.lerp(read(z, x, a).tanh(), c, read(f, x, a).sigmoid())),
        (by_pair(i, vectors).sigmoid() * of_word,
         lambda c, a, x: read(f, x, a).sigmoid() * c + read(i, x, a).sigmoid() * read(plain, x)),
        (by_pair(i, vectors).tanh() * of_word,
         lambda c, a, x: read(f, x, a).sigmoid() * c + read(i, x, a).tanh() * read(plain, x)),
    ]
    for inputs, step in networks:
        automaton, expected = window_automaton(inputs, decays, REAL), loop_of_pairs(step, words)
        torch.testing.assert_close(forward(automaton, symbols).scores[..., 1:].movedim(0, -1), expected,
                                   rtol=0, atol=1e-12)


@pytest.mark.parametrize("carried", [False, True])
def test_isan_and_linear_elman(draw, gate, symbols, carried):
    matrices, offsets, initial = draw(V, D, D), draw(V, D), draw(D) if carried else None
    states = [torch.zeros(B, D, dtype=torch.float64) if initial is None else initial.expand(B, D)]
    for x in symbols.unbind(1):
        states.append((matrices[x] @ states[-1].unsqueeze(-1)).squeeze(-1) + offsets[x])
    assert_derived(affine_automaton(matrices, offsets, initial), symbols, torch.stack(states, 1))
    vectors, z, recurrent = draw(V, C), gate(), draw(D, D)
    expected = loop(lambda c, x: c @ recurrent.T + read(z, x), vectors[symbols], initial)
    automaton = affine_automaton(recurrent.expand(V, -1, -1), read(z, vectors), initial)
    assert_derived(automaton, symbols, expected)


def test_rank_tells_what_no_automaton_scores():
    """Scores of n states, of a^(i + j) by (i, j), are a matrix of rank n at most (Schuetzenberger 1961).

    So for the bigram RCNN, three states, whose gate is a constant; with a gate that reads the state the rank goes on.
    """

    def rank(recurrent):
        first = second = torch.zeros((), dtype=torch.float64)
        scores = []
        for _ in range(13):
            scores.append(second)
            weight = (0.4 + recurrent * second).sigmoid()
            first, second = weight * first + 0.9, weight * second + first * 0.7
        hankel = torch.stack(scores)[torch.arange(7).unsqueeze(1) + torch.arange(7)]
        return int(torch.linalg.matrix_rank(hankel, rtol=1e-9))

    assert rank(0.0) == 3
    assert rank(1.0) > 3


def test_best_path_of_a_pattern():
    """The words that a bigram pattern was found in."""
    names = ["the", "not", "very", "good"]
    found = [torch.tensor([0.1, 0.9, 0.2, 0.1]), torch.tensor([0.1, 0.2, 0.3, 0.8])]
    decays = [torch.tensor([0.5, 0.5, 0.9, 0.5]), torch.full((4,), 0.7)]
    automaton = pattern_automaton([x.log() for x in found], [x.log() for x in decays], LogSemiring())
    sentence = torch.tensor([[names.index(word) for word in "the not very good the".split()]])
    (path,) = best_path(automaton, sentence)
    assert path.arcs == [(0, 0, 0), (0, 1, 1), (1, 1, 2), (1, 2, 3), (2, 2, 4)]
    assert path.score == pytest.approx(torch.tensor(0.9 * 0.9 * 0.8 * 0.7).log().item())


def test_shapes_of_window_and_pattern(draw):
    assert window_automaton(draw(V, V), draw(V, V), REAL).final.shape == (2 * V + 1,)
    with pytest.raises(ValueError, match="as many inputs as decays, 1 or more, got 1 and 2"):
        pattern_automaton([draw(V)], [0.5, 0.5], REAL)
