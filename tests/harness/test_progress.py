"""Bars of progress, where there is an end and where there is none."""

from __future__ import annotations

import math

import pytest

from seqstruct.harness.progress import Progress


@pytest.mark.parametrize("total, shown", [(7.0, "2.5/7"), (math.inf, "2.5/inf")])
def test_bars_are_drawn_with_an_end_and_without(monkeypatch, capsys, total, shown):
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "120")):  # a terminal, to rich
        monkeypatch.setenv(name, value)
    times = iter(range(1000))
    with Progress() as progress:
        assert progress.live
        progress._bars.get_time = lambda: float(next(times))  # so that there is a speed
        advance = progress.task("a training", total)
        for done in (0.5, 1.5, 2.5):
            advance(done, "a note")
    assert shown in capsys.readouterr().err
