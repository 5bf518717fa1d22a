"""Max-marginals: of each part the score of the best structure that has it, by inside and outside scores over (max, +).

The pass inside is any recursion over semirings, run with `RecordedMax`, whose elements are pairs of a score and a
number: each product and each sum gives new numbers and notes of what they are made.  The pass outside goes through the
notes backwards, as back-propagation does, with + for x and max for + (Eisner 2016, section 6.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from seqstruct.ops.marginals import recordable
from seqstruct.ops.semiring import LogSemiring


class RecordedMax(LogSemiring):
    """(max, +) with notes.  Elements are 2 x shape, score and number, float64, and may be moved, cut and joined."""

    def __init__(self) -> None:
        self.count = 0
        self.lifted: list[tuple[Tensor, Tensor]] = []  # log potentials and their numbers
        self.notes: list[tuple[Tensor, Tensor, Tensor]] = []  # numbers: made, of which; and what that goes with

    def lift(self, log_potentials: Tensor) -> Tensor:
        """Those with a gradient are remembered."""
        element = self._numbered(log_potentials.detach())
        if log_potentials.requires_grad:
            self.lifted.append((log_potentials, element[1]))
        return element

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        made = self._numbered(left[0] + right[0])
        left, right = left.expand(made.shape), right.expand(made.shape)
        self.notes.append((made[1], left[1], right[0]))
        self.notes.append((made[1], right[1], left[0]))
        return made

    def sum(self, terms: Tensor, dim: int) -> Tensor:
        made = self._numbered(terms[0].amax(dim))
        self.notes.append((made[1].unsqueeze(dim).expand(terms.shape[1:]), terms[1], torch.zeros(())))
        return made

    def value(self, total: Tensor) -> Tensor:
        """Score and number."""
        return total

    def outside(self, total: Tensor) -> Tensor:
        """Of all numbers the best score of what is around them in a structure of the total; -inf if there is none."""
        found = total.new_full((self.count,), -torch.inf)
        found[total[1].long()] = 0.0
        for made, of, beside in reversed(self.notes):
            index = made.long()
            around = (found[index] + beside.to(found)).flatten()
            found.scatter_reduce_(0, of.long().flatten(), around, "amax")
        return found

    def _numbered(self, scores: Tensor) -> Tensor:
        start, self.count = self.count, self.count + scores.numel()
        numbers = torch.arange(start, self.count, device=scores.device).view_as(scores)
        return torch.stack([scores, numbers.to(scores)])


@torch.inference_mode(False)  # here derivatives are taken
def max_marginals(total: Callable[[tuple[Tensor, ...], LogSemiring], Tensor], potentials: Sequence[Tensor]) -> list:
    """In the shapes of the potentials, float64; -inf where no structure has the part.  No gradient.

    total(potentials, semiring) gives an element B; it lifts what it is given, moved and masked, each part at most once.
    Time of a few passes of the recursion, memory for all its terms.
    """
    semiring = RecordedMax()
    with torch.enable_grad():
        leaves = [recordable(x.detach().double()).requires_grad_() for x in potentials]
        found = total(tuple(leaves), semiring)
    outside = semiring.outside(found)
    scores, there = ([torch.zeros_like(x) for x in leaves] for _ in range(2))
    for lifted, numbers in semiring.lifted:
        best = lifted.detach() + outside[numbers.long()]
        possible = best > -torch.inf
        for sums, flow in ((scores, best.masked_fill(~possible, 0.0)), (there, possible.to(best))):
            back = torch.autograd.grad(lifted, leaves, flow, retain_graph=True, materialize_grads=True)
            for x, y in zip(sums, back, strict=True):
                x += y
    return [x.masked_fill(y == 0, -torch.inf) for x, y in zip(scores, there, strict=True)]
