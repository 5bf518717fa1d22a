"""Linear chains far out of floating-point range, at its edge, and in few digits."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops import chains
from seqstruct.ops.chains import chain_best_path, chain_entropy, chain_log_partition, chain_marginals, chain_sample
from seqstruct.ops.chains.naive import chain_total
from seqstruct.ops.chains.scaled import scaled_chain
from seqstruct.ops.compiled import VARIABLE
from seqstruct.ops.semiring import ExactLogSemiring
from tests.ops.chains.enumeration import INF, derivatives, draw, exactly, indicators, masks


@pytest.mark.parametrize("spread", [30.0, 100.0, 1000.0, 1e4])
@pytest.mark.parametrize(("N", "C"), [(40, 2), (6, 8)])
def test_rows_out_of_range_go_to_the_definition(generator, N, C, spread):
    unary, edge = draw(generator, 3, N, C)
    unary[1] *= spread
    edge[1] *= spread
    unary[1, 0, 0] += 100 * spread  # draws the scale of each step away from what counts in the end
    edge[1, :, 0, 1:] -= 50 * spread
    edge[1, -1, 0, :] -= 100 * spread
    weights = draw(generator, 3, N, C)
    log_partition, marginals, truth = derivatives(unary, edge, weights, ExactLogSemiring())
    unary.requires_grad_(), edge.requires_grad_()
    node, found = chain_marginals(unary, edge)
    torch.testing.assert_close((node, found), marginals, rtol=0, atol=1e-9)
    grads = torch.autograd.grad((node * weights[0]).sum() + (found * weights[1]).sum(), (unary, edge))
    torch.testing.assert_close(grads, truth, rtol=0, atol=1e-9)
    again = chain_log_partition(unary, edge)
    torch.testing.assert_close(again, log_partition, rtol=1e-13, atol=1e-9)
    first = torch.autograd.grad(again.sum(), (unary, edge), create_graph=True)
    torch.testing.assert_close(first, marginals, rtol=0, atol=1e-9)
    second = torch.autograd.grad((first[0] * weights[0]).sum() + (first[1] * weights[1]).sum(), (unary, edge))
    torch.testing.assert_close(second, truth, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("N", "C"), [(700, 2), (700, 5), (2048, 7), (4096, 3)])
def test_ordinary_potentials_never_leave_the_scaled_form(generator, monkeypatch, N, C):
    """Spreads 1 to 6, impossible steps, padding on either side; the truth is the definition, to which all rows go."""
    unary, edge = draw(generator, 5, N, C)
    unary, edge = (x * torch.tensor([1.0, 3.0, 6.0, 3.0, 3.0]).view(5, *[1] * (x.dim() - 1)) for x in (unary, edge))
    blocked = torch.rand(edge[0].shape, generator=generator) < 0.3
    edge[3].masked_fill_(blocked & ~torch.eye(C, dtype=torch.bool), -INF)
    mask = torch.zeros(5, N, dtype=torch.bool)
    mask[2, : N // 3], mask[4, N - N // 5 :] = True, True
    unary.requires_grad_(), edge.requires_grad_()
    weights = draw(generator, 5, N, C)
    calls = []
    monkeypatch.setattr(chains, "chain_total", lambda *x: calls.append(x[0].size(1)) or chain_total(*x))

    def results():
        node, pair = chain_marginals(unary, edge, mask)
        grads = torch.autograd.grad((node * weights[0]).sum() + (pair * weights[1]).sum(), (unary, edge))
        with torch.no_grad():
            return chain_log_partition(unary, edge, mask), node, pair, *grads

    found = results()
    assert not calls
    monkeypatch.setenv(VARIABLE, "0")
    monkeypatch.setattr(chains, "scaled_chain", lambda *x: (y := scaled_chain(*x))._replace(exact=~y.exact))
    truth = results()
    assert calls == [5, 5]
    torch.testing.assert_close(found[0], truth[0], rtol=1e-13, atol=0)
    torch.testing.assert_close(found[1:], truth[1:], rtol=0, atol=1e-11)


def masked_everywhere(generator, C, mask):
    """Rows whose paths all carry the mask: at one place, at two, at a step or at its end, at different places."""
    unary, edge = draw(generator, 5, 4, C)
    unary[0, 2] = mask
    edge[1, 1], unary[1, 3] = mask, mask
    unary[2, 0], unary[2, 3] = mask, 2 * mask
    edge[3, 1, 0], edge[3, 1, 1:] = mask, -INF
    edge[3, 1, 1:, -1] = 0.5
    unary[3, 2, -1] = mask
    unary[4, 1, 0], unary[4, 2, 1:] = mask, mask
    edge[4, 1, 0, 1:], edge[4, 1, 1:, 0] = -INF, -INF
    return unary, edge


@pytest.mark.parametrize("mask", [-1e30, -1e16, 1e30, -1e9])
@pytest.mark.parametrize("C", [2, 3, 6])
def test_every_path_carries_a_mask(generator, C, mask):
    unary, edge = masked_everywhere(generator, C, mask)
    unary.requires_grad_(), edge.requires_grad_()
    node, pair = chain_marginals(unary, edge)
    entropy, log_partition = chain_entropy(unary, edge), chain_log_partition(unary, edge)
    samples = chain_sample(unary, edge, count=1000, generator=generator)
    best = chain_best_path(unary, edge)
    torch.testing.assert_close(node.sum(2), torch.ones(5, 4, dtype=torch.float64), rtol=0, atol=1e-14)
    torch.testing.assert_close(pair.sum((2, 3)), torch.ones(5, 3, dtype=torch.float64), rtol=0, atol=1e-14)
    for b in range(5):
        paths, scores, greatest = exactly(unary[b], edge[b])
        p, (one, two) = scores.softmax(0), indicators(paths, C)
        torch.testing.assert_close(node[b], torch.einsum("p,pnc->nc", p, one), rtol=0, atol=1e-13)
        torch.testing.assert_close(pair[b], torch.einsum("p,pncd->ncd", p, two), rtol=0, atol=1e-13)
        torch.testing.assert_close(entropy[b], torch.special.entr(p).sum(), rtol=1e-12, atol=0)
        assert log_partition[b].item() == pytest.approx(greatest + scores.logsumexp(0).item(), rel=1e-15)
        if b < 3:
            assert torch.equal(best.states[b], paths[scores.argmax()])
            seen = torch.nn.functional.one_hot(samples[:, b], C).double().mean(0)
            torch.testing.assert_close(seen, node[b].detach(), rtol=0, atol=0.05)
        (grad,) = torch.autograd.grad(node[b, 1, 0], unary, retain_graph=True)
        expected = torch.einsum("p,pnc->nc", p * one[:, 1, 0], one) - node[b, 1, 0] * node[b]
        torch.testing.assert_close(grad[b], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("magnitude", [30.0, 1e4, 1e8])
@pytest.mark.parametrize("C", [2, 3, 6])
def test_entropy_keeps_its_digits(generator, C, magnitude):
    """Two best paths that differ by little, or by much, and everything else far away."""
    unary, edge = draw(generator, 6, 4, C, spread=magnitude)
    for b, gap in enumerate([0.0, 1.0, 20.0, 40.0, 300.0, 700.0]):
        edge[b] *= 0.01
        unary[b, 2, 1] = unary[b, 2].max() + 3 * magnitude
        unary[b, 2, 0] = unary[b, 2, 1] - gap
        edge[b, 1, :, 0], edge[b, 2, 0] = edge[b, 1, :, 1], edge[b, 2, 1]
    unary.requires_grad_(), edge.requires_grad_()
    found = chain_entropy(unary, edge)
    grads = torch.autograd.grad(found.sum(), (unary, edge))
    for b in range(6):
        paths, scores, _ = exactly(unary[b], edge[b])
        shares = scores.softmax(0)
        likely = shares.argmax()
        others = shares.index_fill(0, likely, 0.0)
        expected = torch.special.entr(others).sum() - shares[likely] * torch.log1p(-others.sum())
        torch.testing.assert_close(found[b], expected, rtol=1e-9, atol=1e-20)
        weight = (-shares * (scores - scores.logsumexp(0) + expected)).nan_to_num()
        for grad, indicator in zip(grads, indicators(paths, C), strict=True):
            expected_grad = torch.einsum("p,p...->...", weight, indicator)
            torch.testing.assert_close(grad[b], expected_grad, rtol=1e-6, atol=1e-12)
    assert (found >= 0).all()


def test_underflow_is_found():
    """All but 1e-400 of the weight of each first step leads to a state that the second leaves by 1e-500."""
    unary = torch.zeros(1, 3, 2, dtype=torch.float64)
    steps = torch.zeros(1, 2, 2, 2, dtype=torch.float64)
    steps[0, 0, :, 1], steps[0, 1, 0] = -920.0, -1150.0
    assert not scaled_chain(unary, steps).exact.any()
    assert chain_marginals(unary, steps).node[0, 1, 1] > 0.999


@pytest.mark.parametrize("spread", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("C", [2, 9])
def test_single_precision(generator, spread, C):
    unary, edge = draw(generator, 4, 13, C, spread, torch.float32)
    exact = chain_marginals(unary.double(), edge.double())
    unary.requires_grad_(), edge.requires_grad_()
    found = chain_marginals(unary, edge)
    loss = (found.node * unary.detach().sin()).sum() + (found.edge * edge.detach().sin()).sum()
    for grad in torch.autograd.grad(loss + chain_entropy(unary, edge).sum(), (unary, edge)):
        assert grad.dtype == torch.float32
        assert grad.isfinite().all()
    torch.testing.assert_close(found.node, exact.node.float(), rtol=0, atol=1e-5)
    torch.testing.assert_close(found.edge, exact.edge.float(), rtol=0, atol=1e-5)


def test_rows_out_of_range_in_inference_mode(generator):
    unary, edge = draw(generator, 2, 5, 3)
    unary[1, 2], unary[1, 3] = -1e30, -2e30
    edge[1] *= 1e7
    mask = masks([4, 5], 5, left=True)
    with torch.inference_mode():
        given = unary.clone(), edge.clone(), mask.clone()
        found, best = chain_marginals(*given), chain_best_path(*given)
    for states in (best.states, chain_best_path(*given).states):
        assert torch.equal(states, chain_best_path(unary, edge, mask).states)
    torch.testing.assert_close(found, chain_marginals(unary, edge, mask), rtol=0, atol=0)
