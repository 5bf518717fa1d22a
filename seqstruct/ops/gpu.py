"""Kernels in Triton for CUDA devices, which take the place of the same computation in PyTorch: the modules `triton`.

They are compiled by Triton at first use, for float32 and bfloat16; other types, other devices and what
`torch.compile` traces stay with PyTorch, as does everything where Triton is not installed or SEQSTRUCT_COMPILED=0.
With TRITON_INTERPRET=1 in the environment before Triton is imported they run on CPUs, slowly, which is what tests do.
Sums are float32.  Products of float32 are as good as float32's, by three of TF32, where
`torch.get_float32_matmul_precision()` is "highest", its default, and by one of TF32 where it is anything else; so are
those of bfloat16, which TF32 holds exactly, and of what is computed from it.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from seqstruct.ops.compiled import VARIABLE

TYPES = (torch.float32, torch.bfloat16)


@cache
def installed() -> bool:
    """Whether Triton can be imported."""
    return find_spec("triton") is not None


def interpreted() -> bool:
    """Whether Triton runs kernels on CPUs."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def takes(*tensors: Tensor | None) -> bool:
    """Whether Triton's kernels compute with these tensors, none of them empty and all on the current CUDA device."""
    present = [x for x in tensors if x is not None]
    if not all(_here(x) and x.dtype in TYPES and x.numel() for x in present):
        return False
    return installed() and os.environ.get(VARIABLE) != "0" and not torch.compiler.is_compiling()


def _here(x: Tensor) -> bool:
    if interpreted():
        return x.device.type == "cpu"
    return x.is_cuda and x.device.index == torch.cuda.current_device()


def takes_step(features: Any, *tensors: Tensor | None, log_decay: Tensor | None = None) -> bool:
    """Whether kernels take one query, B H 1 D, and what is written beside it, after a decay: as `one_step` has it."""
    return one_step(features, *tensors, log_decay) and takes(*tensors)


def one_step(features: Any, *tensors: Tensor | None) -> bool:
    """Whether the first of these is one query, B H 1 D, and no gradient is recorded, of the features' map either."""
    given = (*tensors, *(() if features is None else features.by_head()))
    recorded = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in given)
    return tensors[0].size(2) == 1 and (features is None or features.chunked) and not recorded


def host_may_look(x: Tensor) -> bool:
    """Whether the host may wait for numbers of x: not while a CUDA graph is captured, and not where there are none."""
    return not (x.is_meta or x.is_cuda and torch.cuda.is_current_stream_capturing())


def precision(*operands: Tensor) -> str:
    """How products of these are made, Triton's `input_precision`."""
    if torch.version.hip:
        return "ieee"  # AMD's have no TF32 that Triton takes everywhere
    half = all(x.dtype == torch.bfloat16 for x in operands)
    return "tf32" if half or torch.get_float32_matmul_precision() != "highest" else "tf32x3"


def power(size: int, most: int = 2**20) -> int:
    """The least power of two from `size` on, between 16, which products need, and `most`."""
    return max(16, min(most, 1 << (size - 1).bit_length()))
