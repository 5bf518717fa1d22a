"""What chains and trees have in common: rows padded on either side, and log potentials that are numbers.

A log potential is any real number or -inf (impossible).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.masking import check_padding_mask
from seqstruct.ops.semiring import add_exactly, shares

LOWEST = -1e300  # stands for -inf where that is subtracted
LARGEST_POTENTIAL = 2.0**20  # beyond it sums in float64 lose more than 1e-10


class Rows(NamedTuple):
    """Where the real positions of each row are.

    real: B N bool, position t of the row, padding moved to the end, is real; None where all are.
    first: B long, how many padded positions stand in front of them; None where no row has any.
    """

    real: Tensor | None
    first: Tensor | None

    @classmethod
    def of(cls, padding_mask: Tensor | None, batch: int, length: int) -> Rows:
        """From a mask B N, True = padding.  Raises ValueError unless each row's real positions stand side by side."""
        check_padding_mask(padding_mask, batch, length)
        if padding_mask is None or length == 0 or not bool(padding_mask.any()):
            return cls(None, None)
        here = ~padding_mask
        first = here.int().argmax(1)
        real = _positions(padding_mask) < here.sum(1, keepdim=True)
        if not bool(first.any()):
            first, in_front = None, here
        else:
            in_front = here.gather(1, (_positions(padding_mask) + first.unsqueeze(1)) % length)
        broken = (in_front != real).any(1)
        if bool(broken.any()):
            row = int(broken.nonzero()[0])
            raise ValueError(f"padding_mask: expected padding before or after all real positions, not so in row {row}")
        return cls(real, first)

    def lengths(self, batch: int, length: int, device: torch.device) -> Tensor:
        """B long, the number of real positions."""
        if self.real is None:
            return torch.full((batch,), length, device=device)
        return self.real.sum(1)

    def to_front(self, x: Tensor, *dims: int, root: bool = False) -> Tensor:
        """Roll each row of x (B ..) along axes of positions, so that padding comes last.

        With `root` the axis has one more position in front, which stays.
        """
        return x if self.first is None else _roll(x, self.first, dims, root)

    def back(self, x: Tensor, *dims: int, root: bool = False) -> Tensor:
        """Undo `to_front`."""
        return x if self.first is None else _roll(x, -self.first, dims, root)


def _positions(rows: Tensor) -> Tensor:
    return torch.arange(rows.size(1), device=rows.device).unsqueeze(0)


def _roll(x: Tensor, shift: Tensor, dims: tuple[int, ...], root: bool) -> Tensor:
    for dim in dims:
        size = x.size(dim) - root
        if size < 1:
            continue
        index = (torch.arange(size, device=x.device) + shift.unsqueeze(1)) % size
        if root:
            index = torch.cat([index.new_zeros(index.size(0), 1), index + 1], 1)
        shape = [1] * x.dim()
        shape[0], shape[dim] = index.shape
        x = x.gather(dim, index.view(shape).expand([x.size(0) if d == 0 else s for d, s in enumerate(x.shape)]))
    return x


def level_(log_potentials: Tensor, *dims: int) -> Tensor:
    """Subtract the maximum over some axes, in place; what was subtracted, without these axes, LOWEST where all is -inf.

    Numbers far from the maximum may lose digits.
    """
    highest = log_potentials.amax(dims, keepdim=True).clamp_(min=LOWEST)
    log_potentials.sub_(highest)
    return highest.squeeze(dims)


def level_exactly(log_potentials: Tensor, *dims: int) -> tuple[Tensor, Tensor, Tensor]:
    """`level_` of a copy: what is left, what rounding took from it, and what was subtracted."""
    highest = log_potentials.amax(dims, keepdim=True).clamp_(min=LOWEST)
    return *add_exactly(log_potentials, -highest), highest.squeeze(dims)


def finite_sum(levels: Tensor) -> Tensor:
    """Over axis 1, of what was subtracted where anything was possible."""
    return levels.masked_fill(levels <= LOWEST, 0.0).sum(1)


def choice(left: Tensor, right: Tensor, rest: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """The sum over an axis of exp(left + right + rest), all of one shape or broadcast.

    Returns the greatest left + right, the logarithm of the sum less that, and the share of each term.  However large
    left and right are, no digit of rest is lost.
    """
    score, lost = add_exactly(left, right)
    best = score.amax(dim)
    terms = (score - best.unsqueeze(dim) + (rest + lost)).masked_fill_(score == -torch.inf, -torch.inf)
    return best, *shares(terms, dim)


def refuse_what_is_no_number(name: str, log_potentials: Tensor) -> None:
    """Raise ValueError, naming the first place, if a log potential is NaN or +inf."""
    wrong = ~(log_potentials < torch.inf)
    if bool(wrong.any()):
        place = wrong.nonzero()[0].tolist()
        raise ValueError(f"{name}: expected numbers or -inf, got {float(log_potentials[tuple(place)])} at {place}")
