"""Marginals of linear chains and dependency trees, forward and backward, beside torch-struct and supar.

The peers (Rush 2020; Zhang et al. 2020) take part where they are installed.  Each is given its own layout of the
potentials, with unary potentials folded into the edges where it wants that, outside of what is timed; the gradient is
taken of a random weighting of the marginals.  Potentials are normal with variance 1, in float32, without padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

import torch
from torch import Tensor

from seqstruct.benchmarks.timing import Contestant, machine, measure, table
from seqstruct.ops.dependency import projective_marginals
from seqstruct.ops.linear_chain import chain_marginals
from seqstruct.ops.spanning_tree import spanning_marginals

CHAINS = [(32, 50, 2), (128, 50, 2), (32, 3, 25)]  # batch, positions, states
TREES = [(20, 25), (32, 40)]  # batch, words
OURS = "seqstruct"


def run(lengths: Sequence[int] | None, repeats: int) -> str:
    """The table, of the sizes of the experiments of Kim et al. (2017), or of batches of 32 of the given lengths.

    Raises ValueError on a length below 1.
    """
    if lengths and min(lengths) < 1:
        raise ValueError(f"expected lengths of 1 or more, got {min(lengths)}")
    chains = [(32, n, 2) for n in lengths] if lengths else CHAINS
    trees = [(32, n) for n in lengths] if lengths else TREES
    cases = {f"chain, batch {B}, n {n}, {C} states": chain(B, n, C) for B, n, C in chains}
    cases |= {f"projective trees, batch {B}, n {n}": projective(B, n) for B, n in trees}
    cases |= {f"all trees, batch {B}, n {n}": spanning(B, n) for B, n in trees}
    rows = []
    for case, contestants in cases.items():
        timings = measure(contestants, repeats)
        for name, timing in timings.items():
            ratio = "" if name == OURS else f"{timing.both / timings[OURS].both:.1f}"
            rows.append([case, name, f"{timing.forward:.2f}", f"{timing.both:.2f}", ratio, f"{timing.kept:.1f}"])
    absent = [name for name in ("torch_struct", "supar") if _peer(name) is None]
    note = f"; not installed: {', '.join(absent)}" if absent else ""
    title = f"Marginals, float32; medians of {repeats}{note}\n{machine()}\n"
    return title + table(["case", "", "forward ms", "forward+backward ms", "times ours", "kept MB"], rows)


def chain(batch: int, length: int, states: int) -> dict[str, Contestant]:
    """Edge marginals of linear chains; the peer's edges lie [to, from]."""
    unary, edge = draw(1, batch, length, states), draw(2, batch, length - 1, states, states)
    contestants = {OURS: contestant(lambda: chain_marginals(unary, edge).edge, [unary, edge])}
    peer = _peer("torch_struct")
    if peer and length > 1:
        folded = edge.detach() + unary.detach()[:, 1:].unsqueeze(2)
        folded[:, 0] += unary.detach()[:, 0].unsqueeze(2)
        folded = folded.transpose(2, 3).contiguous().requires_grad_()
        contestants["torch-struct"] = contestant(lambda: peer.LinearChainCRF(folded).marginals, [folded])
    return contestants


def projective(batch: int, words: int) -> dict[str, Contestant]:
    """Arc marginals of projective trees of any number of root arcs."""
    arcs = draw(1, batch, words + 1, words + 1)
    contestants = {OURS: contestant(lambda: projective_marginals(arcs), [arcs])}
    if peer := _peer("torch_struct"):
        inner = _root_on_diagonal(arcs)
        contestants["torch-struct"] = contestant(lambda: peer.DependencyCRF(inner).marginals, [inner])
    if other := _peer("supar"):
        by_word = arcs.detach().transpose(1, 2).contiguous().requires_grad_()
        contestants["supar"] = contestant(lambda: other.DependencyCRF(by_word, multiroot=True).marginals, [by_word])
    return contestants


def spanning(batch: int, words: int) -> dict[str, Contestant]:
    """Arc marginals of all trees of any number of root arcs."""
    arcs = draw(1, batch, words + 1, words + 1)
    contestants = {OURS: contestant(lambda: spanning_marginals(arcs), [arcs])}
    if peer := _peer("torch_struct"):
        inner = _root_on_diagonal(arcs)
        contestants["torch-struct"] = contestant(lambda: peer.NonProjectiveDependencyCRF(inner).marginals, [inner])
    if other := _peer("supar"):
        by_word = arcs.detach().transpose(1, 2).contiguous().requires_grad_()
        contestants["supar"] = contestant(lambda: other.MatrixTree(by_word, multiroot=True).marginals, [by_word])
    return contestants


def draw(seed: int, *shape: int) -> Tensor:
    """A leaf of random potentials."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def contestant(forward: Callable[[], Tensor], leaves: Sequence[Tensor]) -> Contestant:
    """Marginals, and the gradient of a fixed weighting of them."""
    weights = draw(3, *forward().shape).detach()
    return Contestant(forward, lambda marginals: torch.autograd.grad(marginals, leaves, weights))


def _root_on_diagonal(arcs: Tensor) -> Tensor:
    inner = arcs.detach()[:, 1:, 1:].clone()
    inner.diagonal(dim1=1, dim2=2).copy_(arcs.detach()[:, 0, 1:])
    return inner.requires_grad_()


def _peer(name: str):
    try:
        return import_module({"supar": "supar.structs"}.get(name, name))
    except ImportError:
        return None
