"""The dropout module of this package's layers: PyTorch's, by the faster of two kernels (`ops.dropout`)."""

from __future__ import annotations

from torch import Tensor, nn

from seqstruct.ops.dropout import drop


class Dropout(nn.Dropout):
    """`nn.Dropout`, never in place."""

    def forward(self, x: Tensor) -> Tensor:
        return drop(x, self.p, self.training)
