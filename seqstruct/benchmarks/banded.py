"""Band matrices in log space, for torch-struct's alignments, which take them from genbmm (Rush 2020).

genbmm is an extension for CUDA; what it has for other devices goes through single numbers in Python.  Here the same
products are a logarithm of sums over whole bands, in PyTorch.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad


class BandedMatrix:
    """Of data batch n lu+1+ld: [b, i, k] stands in row i and column i + k - lu.  `fill` is zero, in log space."""

    def __init__(self, data: Tensor, lu: int, ld: int, fill: float) -> None:
        self.data, self.lu, self.ld, self.fill = data, lu, ld, fill

    def band_pad(self, t: int) -> BandedMatrix:
        """With t more diagonals on either side."""
        return BandedMatrix(pad(self.data, (t, t), value=self.fill), self.lu + t, self.ld + t, self.fill)

    def band_shift(self, t: int) -> BandedMatrix:
        """The same matrix in other diagonals: t, -1 to 1, more below and less above."""
        return BandedMatrix(self._moved(t, 2), self.lu + t, self.ld - t, self.fill)

    def col_shift(self, t: int) -> BandedMatrix:
        """Row i + t in the place of row i, each with its columns."""
        return BandedMatrix(self._moved(t, 1), self.lu - t, self.ld + t, self.fill)

    def transpose(self) -> BandedMatrix:
        """Rows as columns."""
        n, width = self.data.shape[1:]
        diagonal = torch.arange(width, device=self.data.device)
        row = torch.arange(n, device=self.data.device)[:, None] + diagonal - self.ld
        found = self.data[:, row.clamp(0, n - 1), diagonal.flip(0)]
        return BandedMatrix(found.masked_fill((row < 0) | (row >= n), self.fill), self.ld, self.lu, self.fill)

    def multiply_log(self, other: BandedMatrix) -> BandedMatrix:
        """The product with the transpose of the other."""
        n, width = self.data.shape[1:]
        lu, ld = self.lu + other.ld, self.ld + other.lu
        places = torch.arange(max(n, width), device=self.data.device)
        column = places[:n, None] + places[:width] - self.lu
        own = self.data.masked_fill((column < 0) | (column >= n), self.fill)
        around = pad(other.data, (width - 1, width - 1, lu, ld), value=self.fill).unfold(2, width, 1).flip(2)
        beside = torch.stack([around[:, j : j + n, j] for j in range(lu + 1 + ld)], 2)
        return BandedMatrix((own.unsqueeze(2) + beside).logsumexp(3), lu, ld, self.fill)

    def _moved(self, t: int, dim: int) -> Tensor:
        if t == 0:
            return self.data
        rest = self.data.narrow(dim, max(t, 0), self.data.size(dim) - 1)
        end = torch.full_like(self.data.narrow(dim, 0, 1), self.fill)
        return torch.cat([rest, end] if t > 0 else [end, rest], dim)


def alignments(torch_struct: Any) -> Any:
    """torch-struct's distribution over alignments, by these matrices where it found no others."""
    for name in ("alignment", "semirings.semirings"):
        module = import_module(f"{torch_struct.__name__}.{name}")
        if not hasattr(module, "genbmm"):
            module.genbmm, module.has_genbmm = sys.modules[__name__], True
    return torch_struct.AlignmentCRF
