"""Log potentials: any real numbers, or -inf (impossible)."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.semiring import LogSemiring

LARGEST_POTENTIAL = 2.0**20  # beyond it sums in float64 lose more than 1e-10


def level_(log_potentials: Tensor, *dims: int) -> Tensor:
    """Subtract the maximum over some axes, in place; what was subtracted, these axes of size 1.

    Numbers far from the maximum may lose digits; where all is -inf, it stays, and what was subtracted says nothing.
    """
    highest = log_potentials.amax(dims, keepdim=True).clamp_(min=-1e300)
    log_potentials.sub_(highest)
    return highest


def leveled(log_potentials: Tensor, semiring: LogSemiring, *dims: int) -> tuple[Tensor, Tensor]:
    """Elements of a semiring less their maximum over some axes, and that maximum, without these axes, 0 if it is -inf.

    A semiring of pairs loses no digits.
    """
    highest = log_potentials.detach().amax(dims, keepdim=True)
    highest = highest.masked_fill(highest == -torch.inf, 0.0)
    return semiring.times(semiring.lift(log_potentials), semiring.lift(-highest)), highest.squeeze(dims)


def refuse_what_is_no_number(name: str, log_potentials: Tensor) -> None:
    """Raise ValueError, naming the first place, if a log potential is NaN or +inf."""
    wrong = ~(log_potentials < torch.inf)
    if bool(wrong.any()):
        place = wrong.nonzero()[0].tolist()
        found = log_potentials[tuple(place)].item()
        raise ValueError(f"{name}: expected numbers or -inf, got {found} at {place}")
