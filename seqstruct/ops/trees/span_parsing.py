"""Binary trees from scores of spans, and from syntactic distances, greedily from the top.

A tree over N words is the list of its N - 1 splits (first, middle, last): the span [first, last] has the parts
[first, middle - 1] and [middle, last].  Positions count from 0.  Splits come parent before child, left before right.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Split = tuple[int, int, int]


def split_top_down(length: int, middle: Callable[[int, int], int]) -> list[Split]:
    """The tree that middle(first, last) chooses, asked for each span of two words or more.

    Raises ValueError if a middle is not in first + 1 .. last, or length is negative.
    """
    if length < 0:
        raise ValueError(f"expected a length of 0 or more, got {length}")
    splits, pending = [], [(0, length - 1)]
    while pending:
        first, last = pending.pop()
        if first >= last:
            continue
        chosen = middle(first, last)
        if not first < chosen <= last:
            raise ValueError(f"[{first}, {last}] cannot be split before word {chosen}")
        splits.append((first, chosen, last))
        pending += [(chosen, last), (first, chosen - 1)]
    return splits


def split_by_span_scores(scores: Tensor, add_left: bool = False) -> list[Split]:
    """Each span [a, j] is split where its right part has the highest score (Peng 2022, section 3.2.2 and eq. 3.6).

    scores: N N, [i, j] of the span [i, j] (any finite number where i <= j, not read elsewhere).  add_left: to the score
    of the right part is added that of the left one (note 7).  Of equal scores the longest right part is taken.
    O(N^2) time.  Raises ValueError if the scores are not a square.
    """
    if scores.dim() != 2 or scores.size(0) != scores.size(1):
        raise ValueError(f"expected scores N N, got {tuple(scores.shape)}")
    scores = scores.detach().cpu()

    def middle(first: int, last: int) -> int:
        total = scores[first + 1 : last + 1, last]
        if add_left:
            total = total + scores[first, first:last]
        return first + 1 + int(total.argmax())

    return split_top_down(len(scores), middle)


def split_by_distances(distances: Tensor) -> list[Split]:
    """A tree from syntactic distances (Shen et al. 2018a, 2018b): (x_<i, (x_i, x_>i)), i of the greatest distance.

    distances: N, how far word i is from the one before; of equal ones the first counts.  A part with nothing on the
    left of x_i is (x_i, x_>i).  No tree with the brackets of "close, open, open" comes out (Peng 2022, section 3.3).
    Raises ValueError if there is more than one axis.
    """
    if distances.dim() != 1:
        raise ValueError(f"expected distances N, got {tuple(distances.shape)}")
    distances = distances.detach().cpu()
    headed: set[tuple[int, int]] = set()

    def middle(first: int, last: int) -> int:
        if (first, last) in headed:  # (x_i, x_>i)
            return first + 1
        at = first + int(distances[first : last + 1].argmax())
        if at == first:
            return first + 1
        headed.add((at, last))
        return at

    return split_top_down(len(distances), middle)


def right_branching(length: int) -> list[Split]:
    """(x_0, (x_1, (x_2, ...)))."""
    return split_top_down(length, lambda first, last: first + 1)


def left_branching(length: int) -> list[Split]:
    """(((x_0, x_1), x_2), ...)."""
    return split_top_down(length, lambda first, last: last)


def random_branching(length: int, generator: torch.Generator) -> list[Split]:
    """Every split uniform over the places of its span."""
    return split_top_down(length, lambda first, last: int(torch.randint(first + 1, last + 1, (), generator=generator)))
