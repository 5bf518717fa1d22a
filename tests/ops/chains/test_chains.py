"""Linear chains: enumeration, the definition, reference numbers, the paper's own backward pass, gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqstruct.ops.chains import chain_best_path, chain_entropy, chain_log_partition, chain_marginals, chain_sample
from seqstruct.ops.chains.scaled import scaled_chain, scaled_chain_tangent
from seqstruct.ops.semiring import LogSemiring
from tests.ops.chains.enumeration import (
    INF,
    OF_ALL,
    defined,
    derivatives,
    draw,
    enumerate_paths,
    indicators,
    masks,
)
from tests.ops.signed_log import Signed, chain_program, gradients, run

OWN = ["c2_n10_lengths_with1", "c2_n12_extreme100", "c3_n7_forbidden", "c4_n6_extreme100", "c3_n8_lengths"]
OUTSIDE = ["c2_n4", "c2_n15", "c2_n50_dp_lengths", "c3_n9", "c4_n7", "c5_n15_dp", "c5_n6", "babi_k2_c25", "babi_k3_c25"]
SIZES = [(5, 2), (4, 3), (1, 3), (2, 2), (3, 7), (7, 1)]


@pytest.mark.parametrize(("N", "C"), SIZES)
def test_sum_over_all_paths(generator, N, C):
    unary, edge = draw(generator, 2, N, C)
    node, pair = chain_marginals(unary, edge)
    for b in range(2):
        paths, scores = enumerate_paths(unary[b], edge[b])
        p = scores.softmax(0)
        one, two = indicators(paths, C)
        torch.testing.assert_close(chain_log_partition(unary, edge)[b], scores.logsumexp(0))
        torch.testing.assert_close(node[b], torch.einsum("p,pnc->nc", p, one))
        torch.testing.assert_close(pair[b], torch.einsum("p,pncd->ncd", p, two))
        torch.testing.assert_close(chain_entropy(unary, edge)[b], torch.special.entr(p).sum())
        best = chain_best_path(unary, edge)
        assert torch.equal(best.states[b], paths[scores.argmax()])
        torch.testing.assert_close(best.score[b], scores.max())


@pytest.mark.parametrize("semiring, of_all", OF_ALL)
def test_one_recursion_many_semirings(generator, semiring, of_all):
    unary, edge = draw(generator, 1, 5, 3)
    scores = enumerate_paths(unary[0], edge[0])[1]
    torch.testing.assert_close(defined(unary, edge, semiring)[0], of_all(scores))


@pytest.mark.parametrize("name", OWN + OUTSIDE)
def test_reference_numbers(golden, name):
    case = np.load(golden("inference", f"crf_{name}.npz"))
    case = {k: torch.from_numpy(np.asarray(v)) for k, v in case.items() if v.dtype.kind in "fi"}
    unary, edge = case["unary"].requires_grad_(), case["edge"].requires_grad_()
    mask = masks(case["lengths"].tolist(), unary.size(1), left=False)
    node, pair = chain_marginals(unary, edge, mask)
    best = chain_best_path(unary, edge, mask)
    assert torch.equal(best.states, case["viterbi"])
    found = {
        "logz": chain_log_partition(unary, edge, mask),
        "node_marginals": node,
        "edge_marginals": pair,
        "entropy": chain_entropy(unary, edge, mask),
        "viterbi_score": best.score,
    }
    loss = (node * case["w_node"]).sum()
    grads = torch.autograd.grad(loss, (unary, edge), retain_graph=True)
    found |= {"grad_unary_nodeloss": grads[0], "grad_edge_nodeloss": grads[1]}
    loss = loss + (pair * case["w_edge"]).sum()
    found["grad_unary"], found["grad_edge"] = torch.autograd.grad(loss, (unary, edge))
    torch.testing.assert_close(found, {key: case[key] for key in found}, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("N", "C"), [(4, 2), (3, 3), (1, 2)])
def test_backward_pass_of_the_paper(generator, N, C):
    unary, edge = (x.requires_grad_() for x in draw(generator, 1, N, C, spread=2.0))
    weights = draw(generator, 1, N, C)
    program, parts = chain_program(N, C)
    leaves = {("u", t, c): Signed(unary[0, t, c].item(), 1) for t in range(N) for c in range(C)}
    leaves |= {("e", *place): Signed(edge[0][place].item(), 1) for place in np.ndindex(*edge.shape[1:])}
    values = run(program, leaves)
    upstream = {("node", *p): weights[0][0][p].item() for p in np.ndindex(N, C)}
    upstream |= {("edge", *p): weights[1][0][p].item() for p in np.ndindex(*edge.shape[1:])}
    expected = gradients(program, values, parts, ("A",), upstream)
    node, pair = chain_marginals(unary, edge)
    grads = torch.autograd.grad((node * weights[0]).sum() + (pair * weights[1]).sum(), (unary, edge))
    for letter, grad in zip("ue", grads, strict=True):
        for place in np.ndindex(*grad.shape[1:]):
            assert grad[0][place].item() == pytest.approx(expected[(letter, *place)].number(), abs=1e-12)


@pytest.mark.parametrize(("N", "C"), [(1, 3), (2, 2), (5, 2), (9, 3), (4, 7), (50, 2)])
def test_scaled_forms_equal_the_definition(generator, N, C):
    potentials, direction = draw(generator, 3, N, C, spread=2.0), draw(generator, 3, N, C)
    log_partition, marginals, tangent = derivatives(*potentials, direction, LogSemiring())
    scaled = scaled_chain(*potentials)
    assert scaled.exact.all()
    torch.testing.assert_close(scaled.log_partition, log_partition)
    torch.testing.assert_close(scaled.marginals, marginals, rtol=0, atol=1e-12)
    found = scaled_chain_tangent(scaled.kept, scaled.loan, *direction)
    torch.testing.assert_close(found, tangent, rtol=0, atol=1e-11)


@pytest.mark.parametrize(("N", "C"), SIZES)
def test_gradcheck(generator, N, C):
    potentials = tuple(x.requires_grad_() for x in draw(generator, 2, N, min(C, 6)))
    mask = masks([N, max(1, N - 1)], N, left=True)
    assert torch.autograd.gradcheck(lambda *x: chain_marginals(*x, mask), potentials)
    assert torch.autograd.gradcheck(lambda *x: chain_entropy(*x, mask), potentials)
    assert torch.autograd.gradcheck(lambda *x: chain_log_partition(*x, mask), potentials)
    assert torch.autograd.gradgradcheck(lambda *x: chain_log_partition(*x, mask), potentials)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("C", [2, 7])
def test_padding_is_invisible(generator, left, C):
    lengths, N = [7, 3, 1, 0, 5], 7
    unary, edge = draw(generator, 5, N, C)
    mask = masks(lengths, N, left)
    for x in (unary, edge):
        x[mask[:, : x.size(1)] & mask[:, -x.size(1) :]] = float("nan")
    unary[mask] = float("nan")
    unary.requires_grad_(), edge.requires_grad_()
    node, pair = chain_marginals(unary, edge, mask)
    grads = torch.autograd.grad(node.square().sum() + pair.square().sum(), (unary, edge))
    best, entropy = chain_best_path(unary, edge, mask), chain_entropy(unary, edge, mask)
    log_partition = chain_log_partition(unary, edge, mask)
    assert (node[mask] == 0).all() and (grads[0][mask] == 0).all()
    for b, length in enumerate(lengths):
        first = N - length if left else 0
        here, steps = slice(first, first + length), slice(first, first + max(0, length - 1))
        alone = [x[b : b + 1, s].detach().clone().requires_grad_() for x, s in ((unary, here), (edge, steps))]
        one = chain_marginals(*alone)
        torch.testing.assert_close(node[b, here], one.node[0], rtol=0, atol=1e-13)
        torch.testing.assert_close(pair[b, steps], one.edge[0], rtol=0, atol=1e-13)
        torch.testing.assert_close(log_partition[b], chain_log_partition(*alone)[0])
        torch.testing.assert_close(entropy[b], chain_entropy(*alone)[0])
        assert torch.equal(best.states[b, here], chain_best_path(*alone).states[0])
        if length:
            own = torch.autograd.grad(one.node.square().sum() + one.edge.square().sum(), alone)
            torch.testing.assert_close(grads[0][b, here], own[0][0], rtol=0, atol=1e-13)
            torch.testing.assert_close(grads[1][b, steps], own[1][0], rtol=0, atol=1e-13)
    assert (best.states[mask] == -1).all()
    assert log_partition[3] == 0 and entropy[3] == 0


@pytest.mark.parametrize("C", [2, 6])
def test_nothing_possible(C):
    unary, edge = torch.zeros(2, 3, C, requires_grad=True), torch.zeros(2, 2, C, C)
    edge[0, 1] = -INF
    edge.requires_grad_()
    node, pair = chain_marginals(unary, edge)
    log_partition = chain_log_partition(unary, edge)
    assert log_partition[0] == -INF and log_partition[1].isfinite()
    assert (node[0] == 0).all() and (pair[0] == 0).all()
    grads = torch.autograd.grad(node.sin().sum() + pair.sin().sum(), (unary, edge))
    assert all(grad.isfinite().all() for grad in grads)
    assert (chain_best_path(unary, edge).states[0] == -1).all()
    assert chain_entropy(unary, edge)[0] == 0


@pytest.mark.parametrize("number", [float("nan"), INF])
@pytest.mark.parametrize("form", [chain_marginals, chain_log_partition, chain_best_path, chain_entropy])
def test_what_is_no_number_is_refused(generator, number, form):
    unary, edge = draw(generator, 2, 4, 3)
    edge[1, 2, 0, 1] = number
    with pytest.raises(ValueError, match=r"edge: .* at \[1, 2, 0, 1\]"):
        form(unary, edge)


def test_samples_have_the_right_frequency(generator):
    unary, edge = draw(generator, 2, 4, 2)
    mask = masks([4, 2], 4, left=True)
    samples = chain_sample(unary, edge, mask, count=4000, generator=generator)
    assert (samples[:, 1, :2] == -1).all()
    for b, real in enumerate((slice(0, 4), slice(2, 4))):
        paths, scores = enumerate_paths(unary[b, real], edge[b, real.start : 3])
        seen = (samples[:, None, b, real] == paths).all(2).double().mean(0)
        torch.testing.assert_close(seen, scores.softmax(0), rtol=0, atol=0.03)


def test_samples_follow_their_generator(generator):
    potentials = draw(generator, 2, 9, 3)
    one, same = (chain_sample(*potentials, count=3, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(one, same)


def test_no_graph_without_gradient(generator):
    potentials = draw(generator, 2, 5, 2)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        node, pair = chain_marginals(*potentials)
        potentials[0].requires_grad_()
        with torch.no_grad():
            assert not chain_marginals(*potentials).node.requires_grad
    assert not chain_best_path(*potentials).score.requires_grad
    assert not node.requires_grad and not pair.requires_grad and not kept
    with torch.no_grad():
        assert not chain_log_partition(*potentials).requires_grad


def test_backward_twice(generator):
    unary, edge = (x.requires_grad_() for x in draw(generator, 2, 5, 2))
    loss = chain_marginals(unary, edge).node[:, 1, 0].sum()
    first = torch.autograd.grad(loss, (unary, edge), retain_graph=True)
    assert all(torch.equal(x, y) for x, y in zip(first, torch.autograd.grad(loss, (unary, edge)), strict=True))


def test_shapes_are_checked(generator):
    unary, edge = draw(generator, 2, 5, 3)
    for wrong in ((unary, edge[:, 1:]), (unary[0], edge), (unary, edge.float()), (unary.long(), edge.long())):
        for function in (chain_marginals, chain_entropy):
            with pytest.raises(ValueError, match="expected unary"):
                function(*wrong)
    between = torch.tensor([[False] * 5, [False, True, False, False, True]])
    with pytest.raises(ValueError, match="row 1"):
        chain_marginals(unary, edge, between)
    with pytest.raises(ValueError, match="1 or more"):
        chain_sample(unary, edge, count=0, generator=generator)


def test_no_position_at_all():
    unary, edge = torch.zeros(2, 0, 3, requires_grad=True), torch.zeros(2, 0, 3, 3, requires_grad=True)
    assert torch.equal(chain_log_partition(unary, edge), torch.zeros(2))
    assert chain_marginals(unary, edge).node.shape == (2, 0, 3)
    assert chain_best_path(unary, edge).states.shape == (2, 0)


@pytest.mark.parametrize("C", [2, 7])
def test_a_batch_without_rows(C):
    unary, edge = (torch.zeros(0, *sizes).requires_grad_() for sizes in ((5, C), (4, C, C)))
    marginals = chain_marginals(unary, edge)
    assert marginals.node.shape == unary.shape and marginals.edge.shape == edge.shape
    gradients = torch.autograd.grad(marginals.node.sum() + marginals.edge.sum(), (unary, edge))
    assert [g.shape for g in gradients] == [unary.shape, edge.shape]
    assert chain_log_partition(unary, edge).shape == (0,)
