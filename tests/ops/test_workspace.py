"""Workspaces are lent to one computation at a time, and kept within limits."""

from __future__ import annotations

import gc

import pytest
import torch

from seqstruct.ops.chains import chain_marginals, scan
from seqstruct.ops.compiled import VARIABLE
from seqstruct.ops.trees import projective_marginals, scaled
from seqstruct.ops.workspace import Pool


@pytest.fixture(autouse=True)
def _by_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels have no workspaces."""
    monkeypatch.setenv(VARIABLE, "0")


class Space:
    def __init__(self, nbytes=10):
        self.nbytes = nbytes


def test_what_is_lent_is_nobody_elses():
    pool, made = Pool(100), []

    def make():
        made.append(Space())
        return made[-1]

    first, second = pool.borrow("a", make), pool.borrow("a", make)
    assert first.space is not second.space and pool.nbytes == 0
    space = second.space
    del second
    assert pool.nbytes == 10
    assert pool.borrow("b", make).space is not space
    third = pool.borrow("a", make)
    assert third.space is space and len(made) == 3


def test_the_longest_unused_is_dropped():
    pool = Pool(25)
    loans = {key: pool.borrow(key, Space) for key in "abc"}
    spaces = {key: loan.space for key, loan in loans.items()}
    for key in "abc":
        del loans[key]
    assert pool.nbytes == 20
    assert pool.borrow("c", Space).space is spaces["c"]
    assert pool.borrow("b", Space).space is spaces["b"]
    assert pool.borrow("a", Space).space is not spaces["a"]
    large = pool.borrow("d", lambda: Space(26))
    before = pool.nbytes
    del large
    assert pool.nbytes == before


def chains(generator, B=3, N=6, C=2):
    unary = torch.randn(B, N, C, generator=generator, dtype=torch.float64, requires_grad=True)
    edge = torch.randn(B, N - 1, C, C, generator=generator, dtype=torch.float64, requires_grad=True)
    return [unary, edge], lambda: chain_marginals(unary, edge).edge


def trees(generator, B=3, n=5):
    arcs = torch.randn(B, n + 1, n + 1, generator=generator, dtype=torch.float64, requires_grad=True)
    return [arcs], lambda: projective_marginals(arcs)


@pytest.mark.parametrize("draw", [chains, trees])
def test_graphs_alive_at_the_same_time_do_not_disturb_each_other(generator, draw):
    problems = [draw(generator) for _ in range(3)]

    def gradient(leaves, marginals):
        return torch.autograd.grad(marginals.square().sum(), leaves, retain_graph=True)

    alone = [(marginals := forward(), gradient(leaves, marginals)) for leaves, forward in problems]
    values, grads = [m.detach().clone() for m, _ in alone], [g for _, g in alone]
    del alone
    gc.collect()
    together = [forward() for _, forward in problems]
    for k in (1, 0, 2, 1):
        found = gradient(problems[k][0], together[k])
        assert torch.equal(together[k], values[k])
        assert all(torch.equal(x, y) for x, y in zip(found, grads[k], strict=True))


@pytest.mark.parametrize(("draw", "module"), [(chains, scan), (trees, scaled)])
def test_a_finished_graph_gives_its_space_back(generator, draw, module, monkeypatch):
    monkeypatch.setattr(module, "POOL", Pool())
    leaves, forward = draw(generator)
    marginals = forward()
    assert module.POOL.nbytes == 0
    torch.autograd.grad(marginals.sum(), leaves)
    kept = marginals.detach()
    del marginals
    space = module.POOL.nbytes
    assert space > 0
    again = forward()
    assert module.POOL.nbytes == 0
    assert torch.equal(again, kept)
    del again
    with torch.no_grad():
        forward()
    assert module.POOL.nbytes == space


@pytest.mark.parametrize("draw", [chains, trees])
def test_spaces_made_in_inference_mode_serve_training(generator, draw):
    leaves, forward = draw(generator, 4)
    with torch.inference_mode():
        expected = forward().clone()
    marginals = forward()
    assert torch.equal(marginals.detach(), expected)
    assert all(grad.isfinite().all() for grad in torch.autograd.grad(marginals.square().sum(), leaves))
