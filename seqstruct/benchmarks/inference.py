"""Marginals of linear chains and dependency trees, forward and backward: beside torch-struct and supar, and by length.

The peers (Rush 2020; Zhang et al. 2020) take part where they are installed.  Each is given its own layout of the
potentials, with unary potentials folded into the edges where it wants that, outside of what is timed; the gradient is
taken of a random weighting of the marginals.  Potentials are normal with variance 1, in float32, without padding.
By length ours stand alone: time is to grow as their cost does, by the exponent 1 for chains and 3 for trees, and not to
jump where a partition function leaves the range of float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import log

import torch
from torch import Tensor

from seqstruct.benchmarks import peers
from seqstruct.benchmarks.timing import Contestant, Place, draw, heading, measure
from seqstruct.command import text_table
from seqstruct.ops.chains import chain_marginals
from seqstruct.ops.trees import projective_marginals, spanning_marginals

CHAINS = [(32, 50, 2), (128, 50, 2), (32, 3, 25)]  # batch, positions, states
TREES = [(20, 25), (32, 40)]  # batch, words
LONG_CHAINS, LONG_TREES = [256, 512, 1024, 2048, 4096], [100, 200, 300, 400]
STATES = [2, 3, 5]
OURS = "seqstruct"
KINDS = {  # arc marginals of trees of any number of root arcs: ours, torch-struct's and supar's
    "projective trees": (projective_marginals, "DependencyCRF", "DependencyCRF"),
    "all trees": (spanning_marginals, "NonProjectiveDependencyCRF", "MatrixTree"),
}


def run(
    lengths: Sequence[int] | None, repeats: int, sections: Sequence[str] | None = None, device: str = "cpu"
) -> str:
    """The tables of the sections, peers and lengths (all by default), at given lengths or at those of the module.

    Raises ValueError on a device that is not to be had.
    """
    place, tables = Place.of(device, "float32"), {"peers": _beside_peers, "lengths": _by_length}
    shown = [make(lengths, repeats, place) for name, make in tables.items() if not sections or name in sections]
    return heading("Marginals", place, repeats, "torch-struct", "supar") + "\n\n".join(shown)


def _beside_peers(lengths: Sequence[int] | None, repeats: int, place: Place) -> str:
    """Of the sizes of the experiments of Kim et al. (2017), or of batches of 32 of the given lengths."""
    chains = [(32, n, 2) for n in lengths] if lengths else CHAINS
    sizes = [(32, n) for n in lengths] if lengths else TREES
    cases = {f"chain, batch {B}, n {n}, {C} states": chain(B, n, C, place) for B, n, C in chains}
    cases |= {f"{kind}, batch {B}, n {n}": trees(kind, B, n, place) for kind in KINDS for B, n in sizes}
    rows = []
    for case, contestants in cases.items():
        timings = measure(contestants, repeats, place=place)
        for name, timing in timings.items():
            ratio = "" if name == OURS else f"{timing.both / timings[OURS].both:.1f}"
            rows.append([case, name, f"{timing.forward:.2f}", f"{timing.both:.2f}", ratio, f"{timing.kept:.1f}"])
    return text_table(["case", "", "forward ms", "forward+backward ms", "times ours", "kept MB"], rows)


def _by_length(lengths: Sequence[int] | None, repeats: int, place: Place) -> str:
    """Each case at growing lengths, with the exponent of its time since the length before."""
    cases = {
        f"chain, batch 8, {C} states": (lengths or LONG_CHAINS, partial(chain, 8, states=C, place=place))
        for C in STATES
    }
    cases["projective trees, batch 2"] = (lengths or LONG_TREES, partial(trees, "projective trees", 2, place=place))
    rows = []
    for case, (sizes, make) in cases.items():
        before = None
        for n in sorted(set(sizes)):
            timing = measure({OURS: make(n)[OURS]}, repeats, place=place)[OURS]
            exponent = "" if before is None else f"{log(timing.both / before[1]) / log(n / before[0]):.2f}"
            rows.append([case, f"{n}", f"{timing.forward:.2f}", f"{timing.both:.2f}", exponent])
            before = n, timing.both
    return text_table(["case", "length", "forward ms", "forward+backward ms", "exponent"], rows)


def chain(batch: int, length: int, states: int, place: Place) -> dict[str, Contestant]:
    """Edge marginals of linear chains; the peer's edges lie [to, from]."""
    leaf = partial(draw, device=place.device)
    unary, edge = leaf(1, batch, length, states), leaf(2, batch, length - 1, states, states)
    contestants = {OURS: contestant(lambda: chain_marginals(unary, edge).edge, [unary, edge])}
    other = peers.peer("torch-struct")
    if other and length > 1:
        folded = edge.detach() + unary.detach()[:, 1:].unsqueeze(2)
        folded[:, 0] += unary.detach()[:, 0].unsqueeze(2)
        folded = folded.transpose(2, 3).contiguous().requires_grad_()
        contestants["torch-struct"] = contestant(lambda: other.LinearChainCRF(folded).marginals, [folded])
    return contestants


def trees(kind: str, batch: int, words: int, place: Place) -> dict[str, Contestant]:
    """Of one of `KINDS`."""
    own, of_torch_struct, of_supar = KINDS[kind]
    arcs = draw(1, batch, words + 1, words + 1, device=place.device)
    contestants = {OURS: contestant(lambda: own(arcs), [arcs])}
    if torch_struct := peers.peer("torch-struct"):
        inner, crf = _root_on_diagonal(arcs), getattr(torch_struct, of_torch_struct)
        contestants["torch-struct"] = contestant(lambda: crf(inner).marginals, [inner])
    if supar := peers.peer("supar"):
        by_word, structure = arcs.detach().transpose(1, 2).contiguous().requires_grad_(), getattr(supar, of_supar)
        contestants["supar"] = contestant(lambda: structure(by_word, multiroot=True).marginals, [by_word])
    return contestants


def contestant(forward: Callable[[], Tensor], leaves: Sequence[Tensor]) -> Contestant:
    """Marginals, and the gradient of a fixed weighting of them."""
    weights = draw(3, *forward().shape, device=leaves[0].device).detach()
    return Contestant(forward, lambda marginals: torch.autograd.grad(marginals, leaves, weights))


def _root_on_diagonal(arcs: Tensor) -> Tensor:
    inner = arcs.detach()[:, 1:, 1:].clone()
    inner.diagonal(dim1=1, dim2=2).copy_(arcs.detach()[:, 0, 1:])
    return inner.requires_grad_()
