"""Dropout of fairseq's own modules, by the faster of two kernels (`ops.dropout`)."""

from __future__ import annotations

from typing import Callable

from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor

from seqstruct.bridge.patches.patch import patch
from seqstruct.ops.dropout import drop


@patch(FairseqDropout, "forward")
def forward(original: Callable, self: FairseqDropout, x: Tensor, inplace: bool = False) -> Tensor:
    """On CPUs PyTorch draws one number after another, which takes longer than the products of small layers."""
    return drop(x, self.p) if self.training or self.apply_during_inference else x
