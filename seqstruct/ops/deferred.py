"""Gradients that wait until the backward pass of a whole loop is done.

A loop of T small products with one matrix has T gradients of that matrix to add up; here their factors meet in one
product.  `Gathering` is how: its token goes into every step and carries no numbers, and its backward pass comes after
those of all steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only


class Tape(ABC):
    """What the backward passes of steps leave behind for that of their leaves."""

    task = -1

    def enter(self) -> None:
        """First in the backward pass of each step: what an earlier pass over the same graph left behind is dropped."""
        task = torch._C._current_graph_task_id()
        if task != self.task:
            self.task = task
            self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Make ready for a backward pass."""

    @abstractmethod
    def gradients(self) -> tuple[Tensor | None, ...]:
        """Of the leaves, in their order."""


class Gathering(torch.autograd.Function):
    """apply(tape, *leaves) is a token of no numbers, of the first leaf's type."""

    @staticmethod
    def forward(ctx, tape: Tape, *leaves: Tensor) -> Tensor:
        ctx.tape = tape
        return leaves[0].new_zeros(())

    @staticmethod
    @first_derivatives_only
    def backward(ctx, _: Tensor):
        return None, *ctx.tape.gradients()


class DeferredProducts:
    """product(x) = x weight, for any number of x.

    weight: K g, for x n K; or B K g, a matrix for each sentence, for x B n K.  Products have the weight's type.
    Without gradients nothing is kept.  First derivatives only.
    """

    def __init__(self, weight: Tensor):
        self.weight, self.token = weight, None
        if torch.is_grad_enabled() and weight.requires_grad:
            self.weight, self.tape = weight.detach(), _Products()
            self.token = Gathering.apply(self.tape, weight)

    def __call__(self, x: Tensor) -> Tensor:
        """... n g for x ... n K."""
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(self.weight.dtype)
            return x @ self.weight if self.token is None else _Product.apply(self.token, x, self.weight, self.tape)


class _Products(Tape):
    """Factors, and gradients of products by the number of the product."""

    def __init__(self) -> None:
        self.factors: list[Tensor] = []

    def begin(self) -> None:
        self.grads: dict[int, Tensor] = {}

    def gradients(self) -> tuple[Tensor]:
        grads = sorted(self.grads.items())
        factors = torch.cat([self.factors[number] for number, _ in grads], -2)
        return (factors.transpose(-2, -1) @ torch.cat([grad for _, grad in grads], -2),)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, token: Tensor, x: Tensor, weight: Tensor, tape: _Products) -> Tensor:
        ctx.tape, ctx.number = tape, len(tape.factors)
        ctx.save_for_backward(token, weight)
        tape.factors.append(x.detach())
        return x @ weight

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor):
        token, weight = ctx.saved_tensors
        ctx.tape.enter()
        ctx.tape.grads[ctx.number] = grad
        return token, grad @ weight.transpose(-2, -1), None, None
