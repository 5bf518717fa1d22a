"""Dropout of fairseq's own modules, by the faster of two kernels (`ops.dropout`), and where decoding can keep it."""

from __future__ import annotations

from typing import Any, Callable

from fairseq.models import BaseFairseqModel
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor

from seqstruct.bridge.patches.patch import patch
from seqstruct.ops.dropout import drop


@patch(FairseqDropout, "forward")
def forward(original: Callable, self: FairseqDropout, x: Tensor, inplace: bool = False) -> Tensor:
    """On CPUs PyTorch draws one number after another, which takes longer than the products of small layers."""
    return drop(x, self.p) if self.training or self.apply_during_inference else x


@patch(BaseFairseqModel, "prepare_for_inference_")
def prepare_for_inference_(prepare: Callable, self: BaseFairseqModel, cfg: Any) -> None:
    """--retain-dropout passes by, without a word, a model whose dropout is not in fairseq's modules."""
    own = type(self).__module__.startswith("seqstruct.")
    if own and getattr(cfg.generation, "retain_dropout", False):
        if not any(isinstance(module, FairseqDropout) for module in self.modules()):
            raise ValueError(f"--retain-dropout: a {type(self).__name__} has no dropout that decoding can keep, as "
                             "transformers have")
    prepare(self, cfg)
