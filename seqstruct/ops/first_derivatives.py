"""Hand-written backward passes that cannot be differentiated again, and say so."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def first_derivatives_only(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass that refuses to become part of a graph, which create_graph=True asks for.

    PyTorch's `once_differentiable` refuses later, at the second pass, but not always: `torch.autograd.grad` walks only
    to the inputs it is given, and what that function returns leads to none, so that second derivatives would come out
    without all that goes through it.
    Raises RuntimeError, naming the module.  It calculates in the types that its forward pass had, under autocast too.
    """

    @functools.wraps(backward)
    def refusing(ctx: Any, *grads: Any) -> Any:
        if torch.is_grad_enabled():
            raise RuntimeError(
                f"{backward.__module__} has first derivatives only: no create_graph=True in a backward pass through it"
            )
        device = next((grad.device.type for grad in grads if grad is not None), "cpu")
        if not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
            return backward(ctx, *grads)
        with torch.autocast(device, enabled=False):
            return backward(ctx, *grads)

    return refusing
