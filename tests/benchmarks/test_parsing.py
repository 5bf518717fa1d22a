"""The benchmark of parsers at a tiny size."""

import pytest

from seqstruct.benchmarks import parsing


@pytest.mark.training
def test_every_step_is_timed(monkeypatch):
    monkeypatch.setattr(parsing, "BATCH", 2)
    monkeypatch.setattr(parsing, "_supar", lambda: None)
    shown = parsing.run([3], 1)
    for name in ("tree, hinge", "tree, likelihood", "graph over tree, spigot"):
        assert f"\n{name} " in shown
    assert "projection at length 3:" in shown and "supar is not installed" in shown


def test_length_zero_is_refused():
    with pytest.raises(ValueError, match="lengths of 1 or more, got 0"):
        parsing.run([0], 1)
