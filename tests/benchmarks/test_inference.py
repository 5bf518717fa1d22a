"""`seqstruct bench inference` runs, with and without peers; how long things take is not tested."""

from __future__ import annotations

import types

import pytest
import torch

from seqstruct.benchmarks import inference, peers
from seqstruct.benchmarks.timing import Place
from seqstruct.cli import main
from seqstruct.ops.chains import chain_marginals

HERE = Place.of("cpu", "float32")


def test_the_table_has_a_row_for_each_case(capsys, threads):
    assert main(["bench", "inference", "--lengths", "1", "3", "--repeats", "1", "--threads", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    cases = [f"{kind}, batch 32, n {n}" for kind in ("chain", "projective trees", "all trees") for n in (1, 3)]
    for case in cases:
        assert any(line.startswith(case) and inference.OURS in line for line in lines)
    names = [line.split("  ")[0] for line in lines]
    growing = [name for name in names if name.endswith(("8, 2 states", "8, 3 states", "8, 5 states", "trees, batch 2"))]
    assert growing == [f"chain, batch 8, {C} states" for C in (2, 2, 3, 3, 5, 5)] + ["projective trees, batch 2"] * 2


def test_sections(refused):
    assert "batch 32" not in inference.run([2, 3], 1, ["lengths"])
    assert "no section width; sections: peers, lengths" in refused("bench", "inference", "--sections", "width")


def test_peers_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setattr(peers, "peer", lambda name: None)
    told = inference.run([2], 1)
    for name in ("torch-struct", "supar"):
        assert f"without {name}, which is " in told


def test_a_peer_is_given_the_same_problem(monkeypatch):
    """A stand-in for the peer, in the peer's layout, made of our own marginals: the numbers must be ours."""

    class LinearChainCRF:
        def __init__(self, edge):
            unary = edge.new_zeros(edge.size(0), edge.size(1) + 1, edge.size(2))
            self.marginals = chain_marginals(unary, edge.transpose(2, 3)).edge.transpose(2, 3)

    monkeypatch.setattr(peers, "peer", lambda name: types.SimpleNamespace(LinearChainCRF=LinearChainCRF))
    contestants = inference.chain(4, 5, 3, HERE)
    ours, theirs = (c.forward() for c in contestants.values())
    torch.testing.assert_close(theirs.transpose(2, 3), ours)


@pytest.mark.parametrize("case", [inference.chain(2, 4, 2, HERE), inference.trees("projective trees", 2, 3, HERE),
                                  inference.trees("all trees", 2, 3, HERE)])
def test_backward_passes_run(case):
    for contestant in case.values():
        contestant.backward(contestant.forward())
