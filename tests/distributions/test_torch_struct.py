"""The same numbers as torch-struct (Rush 2020), each problem in its own layout; where it is not installed, skipped."""

from __future__ import annotations

import pytest
import torch

from seqstruct import distributions as D
from seqstruct.benchmarks.banded import alignments
from tests.randomised import draw

INF = float("inf")
theirs = pytest.importorskip("torch_struct", reason="torch_struct is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def same(ours, other, turned=lambda x: x, part=lambda x: x):
    torch.testing.assert_close(ours.log_partition(), other.partition, **CLOSE)
    torch.testing.assert_close(part(ours.marginals()), turned(other.marginals), **CLOSE)


def test_chains(generator):
    edge, lengths = draw(generator, 3, 6, 4, 4), torch.tensor([7, 2, 5])
    ours = D.LinearChain(torch.zeros(3, 7, 4, dtype=torch.float64), edge, lengths=lengths)
    other = theirs.LinearChainCRF(edge.transpose(2, 3).contiguous(), lengths=lengths)
    same(ours, other, lambda x: x.transpose(2, 3), lambda x: x.edge)
    torch.testing.assert_close(ours.entropy(), other.entropy[0] if other.entropy.dim() > 1 else other.entropy, **CLOSE)


def test_brackets(generator):
    spans, lengths = draw(generator, 3, 6, 6, 3), torch.tensor([6, 1, 4])
    same(D.ConstituencyTree(spans, lengths=lengths), theirs.TreeCRF(spans, lengths=lengths))


def test_segments(generator):
    """Theirs have states between positions: the first is held to state 0."""
    ours = D.SemiMarkov(draw(generator, 3, 5, 3, 2, 2))
    segments = ours.potentials[0].clone()
    segments[:, 0, :, 1:] = -1e9
    other = torch.full((3, 5, 4, 2, 2), -1e9, dtype=torch.float64)
    other[:, :, 1:] = segments.transpose(3, 4)
    torch.testing.assert_close(ours.log_partition(), theirs.SemiMarkovCRF(other).partition, **CLOSE)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_alignments_by_edits(n, generator):
    """Theirs begin with a step to both, and have the other order of steps."""
    steps = draw(generator, 2, n, n, 3)
    other = alignments(theirs)(steps.flip(3))
    ours = D.Alignment(steps, kind="edit")
    torch.testing.assert_close(ours.log_partition(), other.partition - steps[:, 0, 0, 1], rtol=1e-6, atol=1e-6)
    marginals = other.marginals.flip(3).clone()
    marginals[:, 0, 0] = 0
    torch.testing.assert_close(ours.marginals(), marginals, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("multiroot", [True, False])
def test_dependencies(generator, multiroot):
    arcs = draw(generator, 3, 6, 6)
    inner = arcs[:, 1:, 1:].clone()
    inner.diagonal(dim1=1, dim2=2).copy_(arcs[:, 0, 1:])

    def on_diagonal(x):
        x = x[:, :, 1:]
        found = x[:, 1:].clone()
        found.diagonal(dim1=1, dim2=2).copy_(x[:, 0])
        return found

    for ours, name in ((D.ProjectiveTree, "DependencyCRF"), (D.NonProjectiveTree, "NonProjectiveDependencyCRF")):
        p = ours(arcs, single_root=not multiroot)
        q = getattr(theirs, name)(inner.clone().requires_grad_() * 1, multiroot=multiroot)
        close = CLOSE if ours is D.ProjectiveTree else {"rtol": 1e-4, "atol": 1e-4}  # it adds 1e-5 to all weights
        torch.testing.assert_close(on_diagonal(p.marginals()), q.marginals, **close)
