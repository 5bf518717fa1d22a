"""`seqstruct bench rational` runs; how long things take is not tested."""

from __future__ import annotations

import pytest

from seqstruct.benchmarks import rational
from seqstruct.cli import main
from seqstruct.ops.automata import PATTERNS


def test_the_table_has_a_row_for_each_layer(monkeypatch, capsys, threads):
    monkeypatch.setattr(rational, "SIZE", 6)
    monkeypatch.setattr(rational, "MOST_WORDS", 8)
    assert main(["bench", "rational", "--lengths", "1", "7", "--repeats", "1", "--threads", "1"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    for length, batch in (("1", "8"), ("7", "1")):
        for name in [rational.LSTM, *(f"RRNN({a})" for a in PATTERNS)]:
            assert any(row[:3] == [name, length, batch] for row in rows)


@pytest.mark.parametrize("automaton", PATTERNS)
def test_gradients_reach_everything(automaton):
    inputs, weights = rational.draw(1, 2, 3, 4), rational.draw(2, 2, 3, 4)
    layer = rational.rational(automaton, inputs, weights)
    hidden = layer.forward()
    gradients = layer.backward(hidden)
    assert hidden.shape == (2, 3, 4)
    assert all(bool(gradient.abs().sum() > 0) for gradient in gradients)
