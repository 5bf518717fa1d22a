"""Distributions over structures beside torch-struct's: log-partition and marginals, forward and backward.

Batches of 16 with the states and lengths of Rush (2020, Figure 3), or the given lengths; segments of up to 4 positions
and 5 labels, alignments by edits.  Potentials are normal with variance 1, in float32, without padding; each is given
its own layout of them, outside of what is timed.  Of the log-partition the gradient is that of training by likelihood,
of the marginals that of a random weighting, which is a second derivative.  torch-struct's alignments are by `banded`
where genbmm is not installed, and stand beside ours at the smaller size alone: at the greater one their forward pass
takes half a minute.  Of monotone alignments and those of CTC it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from seqstruct.benchmarks import peers
from seqstruct.benchmarks.banded import alignments
from seqstruct.benchmarks.inference import contestant
from seqstruct.benchmarks.timing import Contestant, Place, draw, heading, measure
from seqstruct.command import text_table
from seqstruct.distributions import Alignment, ConstituencyTree, LinearChain, SemiMarkov

BATCH = 16
EDITS = 7  # rows and columns, less one, up to which the peer's alignments take part
OURS, THEIRS = "seqstruct", "torch-struct"
Side = tuple[Callable[..., Any], Callable[[Any], Tensor], list[Tensor]]  # distribution, its marginals' tensor, leaves


def run(lengths: Sequence[int] | None, repeats: int, device: str = "cpu") -> str:
    """The table, at given lengths or at those of the module.  Raises ValueError on a device that is not to be had."""
    place, rows = Place.of(device, "float32"), []
    for case, sides in cases(peers.peer("torch-struct"), lengths, place).items():
        for what in ("log-partition", "marginals"):
            timings = measure({name: timed(what, *side) for name, side in sides.items()}, repeats, place=place)
            for name, timing in timings.items():
                ratio = "" if name == OURS else f"{timing.both / timings[OURS].both:.1f}"
                rows.append([case, what, name, f"{timing.forward:.2f}", f"{timing.both:.2f}", ratio])
    head = heading(f"Distributions, batches of {BATCH}", place, repeats, "torch-struct")
    return head + text_table(["case", "", "", "forward ms", "forward+backward ms", "times ours"], rows)


def timed(what: str, make: Callable[..., Any], part: Callable[[Any], Tensor], leaves: list[Tensor]) -> Contestant:
    """Construction of a distribution and one of its answers."""

    def forward() -> Tensor:
        found = make(*leaves)
        if what == "marginals":
            return part(found)
        return found.log_partition() if hasattr(found, "log_partition") else found.partition

    return contestant(forward, leaves)


def cases(other: Any, lengths: Sequence[int] | None, place: Place) -> dict[str, dict[str, Side]]:
    """Both sides of each case; the peer's states lie [to, from], and its chains have no potentials of single states."""
    found: list[tuple[str, Side, Side | None]] = []
    leaf = partial(draw, device=place.device)
    for n, C in [(n, 20) for n in lengths] if lengths else [(100, 20), (20, 50)]:
        edge = leaf(1, BATCH, n - 1, C, C)
        ours = (LinearChain, lambda p: p.marginals().edge, [leaf(2, BATCH, n, C), edge])
        theirs = other and (other.LinearChainCRF, lambda p: p.marginals, [edge])
        found.append((f"chain, n {n}, {C} states", ours, theirs))
    for n, labels in [(n, 1) for n in lengths] if lengths else [(40, 1), (80, 1), (40, 10)]:
        spans = leaf(3, BATCH, n, n, labels)
        theirs = other and (other.TreeCRF, lambda p: p.marginals, [spans])
        ours = (ConstituencyTree, lambda p: p.marginals(), [spans])
        found.append((f"brackets, n {n}, {labels} labels", ours, theirs))
    for n in lengths or [50]:
        # The peer's lengths begin at 0, where segments of none stay where they are: nothing of ours.
        theirs = other and (other.SemiMarkovCRF, lambda p: p.marginals, [leaf(4, BATCH, n, 5, 5, 5)])
        ours = (SemiMarkov, lambda p: p.marginals(), [leaf(5, BATCH, n, 4, 5, 5)])
        found.append((f"segments, n {n}", ours, theirs))
    for n in lengths or [EDITS, 50]:
        steps = leaf(6, BATCH, n + 1, n + 1, 3)  # the peer's go to the left, to both, up, and begin with one to both
        ours = (lambda x: Alignment(x, kind="edit"), lambda p: p.marginals(), [steps])
        turned = steps.detach().flip(3).requires_grad_()
        theirs = other and n <= EDITS and (alignments(other), lambda p: p.marginals, [turned])
        found.append((f"edits, n {n}", ours, theirs))
    return {name: {OURS: ours, **({THEIRS: theirs} if theirs else {})} for name, ours, theirs in found}
