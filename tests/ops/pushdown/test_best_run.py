"""The most probable run of the nondeterministic stack, against every single run."""

from __future__ import annotations

import math

import pytest
import torch

from seqstruct.ops.pushdown import Run, most_probable_run, transition_count
from tests.ops.pushdown.enumeration import every_run
from tests.ops.pushdown.test_pushdown import INF, draw


def as_enumerated(run: Run):
    return tuple((t.action, *t[2:8]) for t in run.transitions)


@pytest.mark.parametrize(("T", "Q", "S"), [(6, 1, 2), (4, 2, 2), (3, 3, 2), (6, 2, 1), (1, 2, 3), (8, 1, 1)])
def test_best_of_all_runs(generator, T, Q, S):
    logits, _, _ = draw(generator, 5, T, Q, S, 1, spread=3.0)
    logits.view(5, T, Q * S, -1)[2:, T // 2 :, :, 2 * Q * S :] += 6.0  # so that much is popped
    runs = most_probable_run(logits, states=Q, symbols=S)
    assert len(runs) == 5
    for row, run in enumerate(runs):
        every = every_run(logits[row], Q, S)
        weight, best = max(every)
        assert as_enumerated(run) == best
        assert [t.step for t in run.transitions] == list(range(T))
        assert run.log_weight == pytest.approx(weight, abs=1e-12)
        assert sum(t.log_weight for t in run.transitions) == pytest.approx(weight, abs=1e-12)
        total = math.log(sum(math.exp(w - weight) for w, _ in every))
        assert run.log_share == pytest.approx(-total, abs=1e-12)


def test_impossible_transitions_and_no_run_at_all(generator):
    logits, _, _ = draw(generator, 4, 4, 2, 2, 1)
    logits = logits.masked_fill(torch.rand(logits.shape, generator=generator) < 0.5, -INF)
    logits[1, 2] = -INF
    runs = most_probable_run(logits, states=2, symbols=2)
    assert runs[1] == Run((), -INF, -INF)
    for row in (0, 2, 3):
        weight, best = max(every_run(logits[row], 2, 2))
        assert weight > -INF
        assert as_enumerated(runs[row]) == best


def test_extreme_weights(generator):
    logits, _, _ = draw(generator, 2, 4, 2, 2, 1, spread=100.0)
    for row, run in enumerate(most_probable_run(logits.float(), states=2, symbols=2)):
        assert as_enumerated(run) == max(every_run(logits[row].float().double(), 2, 2))[1]
        assert run.log_share <= 0.0


def test_padded_steps_are_left_out(generator):
    logits, _, _ = draw(generator, 2, 7, 2, 2, 1)
    mask = torch.tensor([[1, 1, 0, 0, 1, 0, 1], [1, 1, 1, 1, 1, 1, 1]], dtype=torch.bool)
    first, second = most_probable_run(logits, states=2, symbols=2, padding_mask=mask)
    alone = most_probable_run(logits[:1, ~mask[0]], states=2, symbols=2)[0]
    steps = [2, 3, 5]
    assert [t.step for t in first.transitions] == steps
    assert [(t.action, *t[2:7]) for t in first.transitions] == [(t.action, *t[2:7]) for t in alone.transitions]
    vectors = [steps[t.vector] if t.vector >= 0 else -1 for t in alone.transitions]
    assert [t.vector for t in first.transitions] == vectors
    assert first.log_weight == pytest.approx(alone.log_weight, abs=1e-12)
    assert second == Run((), 0.0, 0.0)


def test_a_long_string_with_one_certain_run(generator):
    """An automaton that pushes 20 times, then pops what was pushed: the run is that one."""
    T, Q, S = 40, 2, 3
    logits = 0.1 * torch.randn(1, T, transition_count(Q, S), generator=generator)
    table = logits.view(T, Q * S, -1)
    symbols = torch.randint(S, (20,), generator=generator).tolist()
    for t, symbol in enumerate(symbols):
        table[t, :, S + symbol] += 20.0  # push (1, symbol)
        table[39 - t, S + symbol, 2 * Q * S + 1] += 20.0  # pop to state 1
    run = most_probable_run(logits, states=Q, symbols=S)[0]
    assert [t.action for t in run.transitions] == ["push"] * 20 + ["pop"] * 20
    assert [t.next_symbol for t in run.transitions[:20]] == symbols
    assert [t.height for t in run.transitions] == [*range(2, 22), *range(20, 0, -1)]
    assert run.log_share > math.log(0.9)


@pytest.mark.parametrize("T", [0, 1])
def test_shortest_sequences(T):
    runs = most_probable_run(torch.zeros(2, T, transition_count(2, 3)), states=2, symbols=3)
    assert [len(run.transitions) for run in runs] == [T, T]
    assert most_probable_run(torch.zeros(0, 3, transition_count(2, 3)), states=2, symbols=3) == []


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="expected logits B T 84"):
        most_probable_run(torch.zeros(2, 5, 83), states=2, symbols=3)
    with pytest.raises(ValueError, match=r"expected a padding mask \(2, 5\)"):
        most_probable_run(torch.zeros(2, 5, 84), states=2, symbols=3, padding_mask=torch.zeros(2, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="1 or more states"):
        most_probable_run(torch.zeros(2, 5, 84), states=0, symbols=3)
