"""Rows of a batch that are padded on either side."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.masking import check_padding_mask, fails, some

NOT_TOGETHER = "padding_mask: expected padding before or after all real positions"


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
        if padding_mask is None or length == 0 or not some(padding_mask):
            return cls(None, None)
        here = ~padding_mask
        first = here.int().argmax(1)
        real = _positions(padding_mask) < here.sum(1, keepdim=True)
        if not some(first != 0):
            first, in_front = None, here
        else:
            in_front = here.gather(1, (_positions(padding_mask) + first.unsqueeze(1)) % length)
        broken = (in_front != real).any(1)
        if fails(broken, NOT_TOGETHER):
            raise ValueError(f"{NOT_TOGETHER}, not so in row {broken.int().argmax()}")
        return cls(real, first)

    def lengths(self, batch: int, length: int, device: torch.device) -> Tensor:
        """B long, the number of real positions."""
        if self.real is None:
            return torch.full((batch,), length, device=device)
        return self.real.sum(1)

    def words(self) -> Tensor | None:
        """B long, as `lengths`; None where all positions are real."""
        return None if self.real is None else self.real.sum(1)

    def select(self, rows: Tensor) -> Rows:
        """Some of the rows, R long."""
        return Rows(*(x if x is None else x.index_select(0, rows) for x in self))

    def to_front(self, x: Tensor, *dims: int, root: bool = False) -> Tensor:
        """Roll each row of x (B ..) along axes of positions, so that padding comes last.

        With `root` the axis has one more position in front, which stays.
        """
        return x if self.first is None else _roll(x, self.first, dims, root)

    def back(self, x: Tensor, *dims: int, root: bool = False) -> Tensor:
        """Undo `to_front` along those axes."""
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
