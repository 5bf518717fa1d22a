"""`seqstruct bench distributions` runs, with and without its peer; how long things take is not tested."""

from __future__ import annotations

import pytest

from seqstruct.benchmarks import distributions, peers
from seqstruct.benchmarks.timing import Place
from seqstruct.cli import main


def test_the_table_has_rows_for_each_case(capsys):
    assert main(["bench", "distributions", "--lengths", "3", "--repeats", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for case in ("chain, n 3, 20 states", "brackets, n 3, 1 labels", "segments, n 3", "edits, n 3"):
        for what in ("log-partition", "marginals"):
            assert any(line.startswith(case) and what in line and distributions.OURS in line for line in lines)


def test_a_peer_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(peers, "peer", lambda name: None)
    assert "without torch-struct, which is " in distributions.run([2], 1)


def test_both_sides_say_the_same_where_the_problem_is_the_same():
    other = pytest.importorskip("torch_struct", reason="torch_struct is not installed")
    cases = distributions.cases(other, [5], Place.of("cpu", "float32"))
    for case in ("brackets, n 5, 1 labels", "edits, n 5"):
        sides = cases[case]
        ours, theirs = (distributions.timed("log-partition", *side).forward() for side in sides.values())
        if case.startswith("edits"):
            _, _, (steps,) = sides[distributions.THEIRS]
            theirs = theirs - steps[:, 0, 0, 1]
        assert (ours - theirs).abs().max() < 1e-4
