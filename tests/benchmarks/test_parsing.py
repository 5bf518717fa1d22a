"""The benchmark of parsers at a tiny size."""

import pytest

from seqstruct.benchmarks import parsing, peers


@pytest.mark.training
def test_every_step_is_timed(monkeypatch):
    monkeypatch.setattr(parsing, "BATCH", 2)
    monkeypatch.setattr(peers, "peer", lambda name: None)
    shown = parsing.run([3], 1)
    for name in ("tree, hinge", "tree, likelihood", "graph over tree, spigot"):
        assert f"\n{name} " in shown
    assert "projection at length 3:" in shown and "without supar, which is " in shown
