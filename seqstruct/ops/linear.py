"""`torch.nn.functional.linear`, by oneDNN where that is faster than what PyTorch takes.

On AMD's processors PyTorch multiplies float32 matrices by MKL, at half the speed of oneDNN's linear layer, which
PyTorch has too.  SEQSTRUCT_LINEAR says which is taken: `auto` (the default), which is oneDNN for LARGE products on such
processors, and PyTorch for all others, `torch`, or `onednn`.  `auto` looks at the processor and at sizes alone, never
at a clock: so two runs on machines of one kind take the same, and give the same numbers to the last bit.  The two
differ by rounding.

The operator `mkldnn::_linear_pointwise` is private to PyTorch: where it is missing, PyTorch's own serves.
"""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from seqstruct.ops.compiled import transformed

VARIABLE = "SEQSTRUCT_LINEAR"
CHOICES = ("auto", "torch", "onednn")  # the default first
LARGE = 2**24  # multiplications, from which on calling oneDNN costs less than it gains
PLAIN = (Tensor, torch.nn.Parameter)


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """inputs (.. I) times weight (O I), and bias (O), if any: .. O.  Differentiable any number of times.

    Raises ValueError if the variable names no choice, or oneDNN where it is not to be had.
    """
    if torch.compiler.is_compiling() or not _fits(inputs, weight, bias):
        return F.linear(inputs, weight, bias)
    rows = inputs.reshape(-1, weight.size(1))  # of more axes the result would be a view, which may not change in place
    recorded = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (inputs, weight, bias))
    found = (_Linear.apply if recorded else _product)(rows, weight, bias)
    return found.view(*inputs.shape[:-1], weight.size(0))


def choice() -> str:
    """What the variable says: `torch`, `onednn`, or `auto` with what that is on this machine for large products.

    Raises ValueError as `linear` does.
    """
    asked = os.environ.get(VARIABLE) or CHOICES[0]
    if asked not in CHOICES:
        raise ValueError(f"expected {VARIABLE} to be one of {', '.join(CHOICES)}, got {asked!r}")
    if asked == "onednn" and not _there():
        raise ValueError(f"{VARIABLE}=onednn, but this PyTorch has no linear layer of oneDNN")
    return asked if asked != "auto" else f"auto: {'onednn' if _faster() else 'torch'}"


def _fits(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether oneDNN is to take them: float32 on the CPU, nothing in between, and large enough for `auto`."""
    count = inputs.numel() * (weight.size(0) if weight.dim() == 2 else 0)
    chosen = choice()
    if not count or chosen.endswith("torch") or (chosen != "onednn" and count < LARGE):
        return False
    given = [x for x in (inputs, weight, bias) if x is not None]
    plain = all(type(x) in PLAIN and x.dtype == torch.float32 and x.is_cpu for x in given)
    plain = plain and (bias is None or bias.shape == weight.shape[:1])
    fits = inputs.dim() > 1 and inputs.size(-1) == weight.size(1) and inputs.layout == weight.layout == torch.strided
    return plain and fits and not torch.is_autocast_enabled("cpu") and not transformed()


@functools.cache
def _there() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@functools.cache
def _faster(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this is a processor of AMD, and MKL is what PyTorch multiplies by."""
    try:
        text = cpuinfo.read_text(encoding="utf-8")
    except OSError:
        text = platform.processor()
    return _there() and torch.backends.mkl.is_available() and "AuthenticAMD" in text


def _product(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Of matrices.  oneDNN has no fast form for parts of matrices, which it takes a thousand times as long for, and
    reads a bias as if it were contiguous."""
    bias = None if bias is None else bias.contiguous()
    return torch.ops.mkldnn._linear_pointwise(_dense(inputs), _dense(weight), bias, "none", [], "")


def _dense(x: Tensor) -> Tensor:
    return x if x.is_contiguous() or x.t().is_contiguous() else x.contiguous()


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return _product(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (inputs, weight), (wants_inputs, wants_weight, wants_bias) = ctx.saved_tensors, ctx.needs_input_grad
        grad = grad.contiguous()
        of_inputs = linear(grad, weight.t()) if wants_inputs else None
        of_weight = _outer(grad, inputs.contiguous()) if wants_weight else None
        return of_inputs, of_weight, grad.sum(0) if wants_bias else None


def _outer(grad: Tensor, inputs: Tensor) -> Tensor:
    """grad (N O) transposed times inputs (N I): O I.  oneDNN copies the left matrix, so that is the smaller one."""
    smaller = grad.size(1) <= inputs.size(1)
    return linear(grad.t(), inputs.t()) if smaller else linear(inputs.t(), grad.t()).t()
