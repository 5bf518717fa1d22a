"""What both kinds of trees have in common: enumeration, reference numbers, padding, masks, impossible arcs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch

from seqstruct.ops import trees
from tests.ops.trees.enumeration import (
    all_trees,
    below_the_best,
    draw_arcs,
    entropy_of,
    indicators,
    masked_everywhere,
    padding,
    scores_of,
)

INF = float("inf")


class Trees(NamedTuple):
    projective: bool
    marginals: Callable
    log_partition: Callable
    entropy: Callable
    best_tree: Callable


PROJECTIVE = Trees(True, trees.projective_marginals, trees.projective_log_partition, trees.projective_entropy,
                   trees.projective_best_tree)
SPANNING = Trees(False, trees.spanning_marginals, trees.spanning_log_partition, trees.spanning_entropy,
                 trees.spanning_best_tree)
kinds = pytest.mark.parametrize("kind", [PROJECTIVE, SPANNING], ids=["projective", "spanning"])
roots = pytest.mark.parametrize("single_root", [False, True])
REFERENCE = {
    PROJECTIVE: [
        "multi_n5_extreme100", "multi_n6_lengths", "single_n6_lengths", "single_n5", "multi_n2", "multi_n3", "multi_n4",
        "multi_n5", "multi_n6", "multi_n6_scale4", "multi_n12", "multi_n25", "multi_n25_lengths", "single_n2",
        "single_n3", "single_n4", "single_n6", "single_n12", "single_n25_lengths",
    ],
    SPANNING: ["multi_n5_lengths", "single_n5", "multi_n3", "multi_n5", "multi_n12", "single_n3"],
}


@kinds
@roots
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_sum_over_all_trees(generator, n, single_root, kind):
    arcs = draw_arcs(generator, 2, n)
    every = all_trees(n, kind.projective, single_root)
    for b in range(2):
        scores = scores_of(every, arcs[b])
        p = scores.softmax(0)
        marginals = kind.marginals(arcs, single_root=single_root)[b]
        torch.testing.assert_close(marginals, torch.einsum("p,phm->hm", p, indicators(every)))
        log_partition = kind.log_partition(arcs, single_root=single_root)
        torch.testing.assert_close(log_partition[b], scores.logsumexp(0))
        torch.testing.assert_close(kind.entropy(arcs, single_root=single_root)[b], torch.special.entr(p).sum())
        best = kind.best_tree(arcs, single_root=single_root)
        assert torch.equal(best.heads[b], every[scores.argmax()])
        torch.testing.assert_close(best.score[b], scores.max())


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in REFERENCE.items() for name in names])
def test_reference_numbers(golden, kind, name):
    case = np.load(golden("inference", f"dep_{'' if kind.projective else 'non'}proj_{name}.npz"))
    case = {k: torch.from_numpy(v) for k, v in case.items() if v.ndim and v.dtype.kind in "fi"}
    single_root, arcs = name.startswith("single"), case["theta"].requires_grad_()
    mask, _ = padding(case["lengths"].tolist(), arcs.size(1) - 1, left=False)
    marginals = kind.marginals(arcs, mask, single_root=single_root)
    found = {
        "marginals": marginals,
        "logz": kind.log_partition(arcs, mask, single_root=single_root),
        "entropy": kind.entropy(arcs, mask, single_root=single_root),
        "grad": torch.autograd.grad((marginals * case["w"]).sum(), arcs)[0],
    }
    if kind.projective or bool(case["max_score"].isfinite().all()):  # enumerated
        best = kind.best_tree(arcs, mask, single_root=single_root)
        assert torch.equal(best.heads, case["heads"])
        found["max_score"] = best.score
    torch.testing.assert_close(found, {key: case[key] for key in found}, rtol=0, atol=1e-9)


@kinds
@roots
@pytest.mark.parametrize("left", [False, True])
def test_padding_is_invisible(generator, left, single_root, kind):
    lengths, n = [5, 3, 1, 0], 5
    mask, places = padding(lengths, n, left)
    arcs = draw_arcs(generator, 4, n)
    for b, place in enumerate(places):
        outside = torch.ones(n + 1, dtype=torch.bool).index_fill(0, place, False)
        arcs[b, outside], arcs[b, :, outside] = float("nan"), float("nan")
    arcs[:, :, 0] = float("nan")
    arcs.requires_grad_()
    marginals = kind.marginals(arcs, mask, single_root=single_root)
    (grad,) = torch.autograd.grad(marginals.square().sum(), arcs)
    log_partition = kind.log_partition(arcs, mask, single_root=single_root)
    entropy = kind.entropy(arcs, mask, single_root=single_root)
    best = kind.best_tree(arcs, mask, single_root=single_root)
    for b, (length, place) in enumerate(zip(lengths, places, strict=True)):
        alone = arcs[b : b + 1, place][:, :, place].detach().clone().requires_grad_()
        one = kind.marginals(alone, single_root=single_root)
        torch.testing.assert_close(marginals[b, place][:, place], one[0], rtol=0, atol=1e-13)
        if length:
            (own,) = torch.autograd.grad(one.square().sum(), alone)
            torch.testing.assert_close(grad[b, place][:, place], own[0], rtol=0, atol=1e-13)
        assert marginals[b].sum().item() == pytest.approx(length)
        assert grad[b].isfinite().all()
        torch.testing.assert_close(log_partition[b], kind.log_partition(alone, single_root=single_root)[0])
        torch.testing.assert_close(entropy[b], kind.entropy(alone, single_root=single_root)[0])
        heads = kind.best_tree(alone, single_root=single_root).heads[0]
        assert torch.equal(best.heads[b, place[1:] - 1], place[heads])
    assert (best.heads[mask] == -1).all()


@kinds
@roots
@pytest.mark.parametrize("mask", [-1e30, -1e9, 1e30])
def test_every_tree_carries_a_mask(generator, mask, single_root, kind):
    arcs = masked_everywhere(generator, 4, mask).requires_grad_()
    marginals = kind.marginals(arcs, single_root=single_root)
    entropy = kind.entropy(arcs, single_root=single_root)
    log_partition = kind.log_partition(arcs, single_root=single_root)
    best = kind.best_tree(arcs, single_root=single_root)
    every = all_trees(4, kind.projective, single_root)
    indicated = indicators(every)
    for b in range(len(arcs)):
        scores, greatest = below_the_best(every, arcs[b])
        p = scores.softmax(0)
        torch.testing.assert_close(marginals[b], torch.einsum("p,phm->hm", p, indicated), rtol=0, atol=1e-13)
        torch.testing.assert_close(entropy[b], entropy_of(scores), rtol=1e-11, atol=0)
        assert log_partition[b].item() == pytest.approx(greatest + scores.logsumexp(0).item(), rel=1e-15)
        if b < 2 or single_root or not kind.projective:
            assert scores[(every == best.heads[b]).all(1)].item() == 0
        (grad,) = torch.autograd.grad(marginals[b, 1, 3], arcs, retain_graph=True)
        expected = torch.einsum("p,phm->hm", p * (indicated[:, 1, 3] - marginals[b, 1, 3]), indicated)
        torch.testing.assert_close(grad[b], expected, rtol=0, atol=1e-13)


@kinds
@roots
def test_impossible_arcs(generator, single_root, kind):
    """-inf: as with weight 0, nothing NaN; rows where no tree is left."""
    n = 4
    arcs = draw_arcs(generator, 3, n)
    blocked = torch.rand(n + 1, n + 1, generator=generator) < 0.5
    blocked[0, 1] = blocked[1, 2] = blocked[2, 3] = blocked[3, 4] = False
    blocked[1:, 1] = True  # the first word can have the root alone as its head
    arcs[0].masked_fill_(blocked, -INF)
    arcs[1, :, 2] = -INF
    arcs.requires_grad_()
    every = all_trees(n, kind.projective, single_root)
    scores = scores_of(every, arcs[0].detach())
    marginals = kind.marginals(arcs, single_root=single_root)
    expected = torch.einsum("p,phm->hm", scores.softmax(0), indicators(every))
    torch.testing.assert_close(marginals[0], expected, rtol=0, atol=1e-13)
    log_partition = kind.log_partition(arcs, single_root=single_root)
    torch.testing.assert_close(log_partition[0], scores.logsumexp(0))
    for loss in (marginals.sin().sum(), log_partition[[0, 2]].sum()):
        (grad,) = torch.autograd.grad(loss, arcs, retain_graph=True)
        assert grad.isfinite().all()
        assert (grad[0][blocked] == 0).all()
    assert log_partition[1] == -INF and (marginals[1] == 0).all()
    best = kind.best_tree(arcs, single_root=single_root)
    assert torch.equal(best.heads[0], every[scores.argmax()])
    assert (best.heads[1] == -1).all() and best.score[1] == -INF
    assert kind.entropy(arcs, single_root=single_root)[1] == 0


@pytest.mark.parametrize("number", [float("nan"), INF])
@pytest.mark.parametrize("form", [*PROJECTIVE[1:], *SPANNING[1:]])
def test_what_is_no_number_is_refused(generator, number, form):
    arcs = draw_arcs(generator, 2, 4)
    mask, _ = padding([4, 3], 4, left=True)
    arcs[1, 3, 4] = number
    with pytest.raises(ValueError, match=r"arcs: .* at \[1, 3, 4\]"):
        form(arcs, mask)
