"""Dropout, and softmax attention with it, by kernels on CPUs that keep no mask.

PyTorch draws one number after another there, which takes longer than the products of a small Transformer, and for
attention with dropout it has no fused kernel.  Here what is kept is a function of a seed, which PyTorch's generator
gives, and of a number's place: Threefry's bits, the same in both passes, on all processors and for any threads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from seqstruct.ops.compiled import Operator, usable
from seqstruct.ops.first_derivatives import first_derivatives_only


def drop(x: Tensor, share: float, training: bool = True) -> Tensor:
    """`torch.nn.functional.dropout`: numbers are zero with probability `share`, else divided by 1 - share."""
    if not training or not kernel_drops(share, x):
        return F.dropout(x, share, training)
    return DROPPED.call(x, share, fresh_seed())


def kernel_drops(share: float, *tensors: Tensor) -> bool:
    """Whether kernels take this dropout: a share between 0 and 1, `usable` tensors, nothing traced."""
    return 0 < share < 1 and not torch.compiler.is_compiling() and usable(*tensors)


def dropped_attention(query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None, causal: bool,
                      share: float) -> Tensor:
    """As `ops.softmax.softmax_attention`, with weights dropped; first derivatives only.  Where `kernel_drops`."""
    if visible is not None:
        visible = visible[(None,) * (4 - visible.dim())]
    return ATTEND.call(query, key, value, visible, causal, share, fresh_seed())[0]


def fresh_seed() -> int:
    """63 bits of PyTorch's generator."""
    return int(torch.randint(2**63 - 1, ()))


def _fake_dropped(x: Tensor, share: float, seed: int) -> Tensor:
    return x.new_empty(x.shape)


def _setup_dropped(ctx: Any, inputs: tuple, output: Tensor) -> None:
    _, *ctx.rest = inputs


def _backward_dropped(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return DROPPED.call(grad, *ctx.rest), None, None


def _fake_attend(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    B, H, T, _ = query.shape
    return query.new_empty(B, H, T, value.size(3)), query.new_empty(B, H, T)


def _setup_attend(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
    query, key, value, visible, *ctx.rest = inputs
    ctx.save_for_backward(query, key, value, visible, *output)
    ctx.mark_non_differentiable(output[1])


@first_derivatives_only
def _backward_attend(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    *given, output, level = ctx.saved_tensors
    return *ATTEND_BACKWARD.call(grad, *given, *ctx.rest, output, level), None, None, None, None


def _fake_attend_backward(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    return tuple(x.new_empty(x.shape) for x in (query, key, value))


DROPPED = Operator("dropped", _fake_dropped, _setup_dropped, _backward_dropped)
ATTEND = Operator("softmax_attention", _fake_attend, _setup_attend, _backward_attend)
ATTEND_BACKWARD = Operator("softmax_attention_backward", _fake_attend_backward)
