"""Products of one weight with inputs that become known one after another, whose weight gradient is one product.

A loop of T small products has T small weight gradients to add up; here their inputs and gradients meet in one.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class DeferredProducts:
    """product(t, x_t) = addend_t + x_t weight, for t = 0, 1, ... in order, each once.

    addend: B T g; weight: K g.  Without gradients nothing is kept.  First derivatives only; the backward pass of any
    step needs all T products to have been made.
    """

    def __init__(self, addend: Tensor, weight: Tensor):
        self.inputs: list[Tensor] | None = None
        if torch.is_grad_enabled() and weight.requires_grad:
            self.inputs = []
            addend = _WeightGradient.apply(addend, weight, self.inputs)
        self.steps = addend.unbind(1)
        self.weight = weight.detach()

    def __call__(self, t: int, x: Tensor) -> Tensor:
        """B g for x B K.  Raises ValueError out of order."""
        if self.inputs is not None:
            if t != len(self.inputs):
                raise ValueError(f"expected step {len(self.inputs)}, got step {t}")
            self.inputs.append(x.detach())
        return torch.addmm(self.steps[t], x, self.weight)


class _WeightGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, addend: Tensor, weight: Tensor, inputs: list[Tensor]) -> Tensor:
        ctx.inputs = inputs
        return addend.view_as(addend)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        inputs = torch.stack(ctx.inputs).to(grad.dtype)  # T B K
        if len(inputs) != grad.size(1):
            raise ValueError(f"{grad.size(1)} products were announced and {len(inputs)} made")
        return grad, inputs.flatten(0, 1).t() @ grad.transpose(0, 1).flatten(0, 1), None
