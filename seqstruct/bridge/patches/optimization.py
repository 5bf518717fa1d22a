"""Adam and the norm of gradients, over all parameters at once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Callable

import torch
from fairseq import utils
from fairseq.optim.adam import Adam
from torch import Tensor

from seqstruct.bridge.patches.patch import patch

BLOCK = 65536  # parameters on a CPU: their values, gradients and moments are a MiB


@patch(Adam, "step")
def step(original: Callable, self: Adam, closure: Callable | None = None) -> Any:
    """Eight kernels are launched for each parameter, half of all that a small model's update takes on a GPU.

    Here each is one for all parameters that have seen as many updates, on CPUs for as many as its cache holds, with the
    same numbers to the last bit.  Where a parameter or its gradient is not in single precision, or is sparse, fairseq's
    runs.  On a GPU the square roots of all second moments are there at once: as much memory as the parameters.
    """
    loss = None if closure is None else closure()
    parameters = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
    if not all(_single(p) and _single(p.grad) for p in parameters) or any(g.get("amsgrad") for g in self.param_groups):
        original(self)
        return loss
    for group in self.param_groups:
        for (updates, device), of in _by_updates(self, group["params"]).items():
            for block in _blocks(of) if device.type == "cpu" else [of]:
                _update(self, group, updates, block)
    return loss


def _single(tensor: Tensor) -> bool:
    return tensor.dtype == torch.float32 and tensor.layout == torch.strided


def _by_updates(adam: Adam, parameters: list[Tensor]) -> dict[tuple[int, torch.device], list[Tensor]]:
    """Parameters that have a gradient by the updates that they have seen, this one among them, and where they are."""
    found = defaultdict(list)
    for p in parameters:
        if p.grad is None:
            continue
        state = adam.state[p]
        if not state:
            state.update(step=0, exp_avg=torch.zeros_like(p.data), exp_avg_sq=torch.zeros_like(p.data))
        state["step"] += 1
        for name in ("exp_avg", "exp_avg_sq"):  # of a checkpoint, they are where it put them
            state[name] = state[name].to(p.data)
        found[state["step"], p.device].append(p)
    return found


def _blocks(parameters: list[Tensor]) -> Iterator[list[Tensor]]:
    """One after another, together as many numbers as BLOCK where not one alone has more."""
    block, size = [], 0
    for p in parameters:
        if block and size + p.numel() > BLOCK:
            yield block
            block, size = [], 0
        block.append(p)
        size += p.numel()
    yield block


def _update(adam: Adam, group: dict[str, Any], updates: int, parameters: list[Tensor]) -> None:
    (beta1, beta2), rate = group["betas"], group["lr"]
    values, gradients = [p.data for p in parameters], [p.grad.data for p in parameters]
    first, second = ([adam.state[p][name] for p in parameters] for name in ("exp_avg", "exp_avg_sq"))
    torch._foreach_mul_(first, beta1)
    torch._foreach_add_(first, gradients, alpha=1 - beta1)
    torch._foreach_mul_(second, beta2)
    torch._foreach_addcmul_(second, gradients, gradients, value=1 - beta2)
    below = torch._foreach_sqrt(second)
    torch._foreach_add_(below, group["eps"])
    if group["weight_decay"]:
        torch._foreach_add_(values, values, alpha=-group["weight_decay"] * rate)
    torch._foreach_addcdiv_(values, first, below, value=-rate * math.sqrt(1 - beta2**updates) / (1 - beta1**updates))


@patch(utils, "clip_grad_norm_")
def clip_grad_norm(
    original: Callable, params: Any, max_norm: float, aggregate_norm_fn: Callable | None = None
) -> Tensor:
    """The norm of each gradient is a kernel, where apex is not installed; here that of all is one.

    The norm comes back, and gradients are scaled to max_norm where it is greater and max_norm is not 0.  On CPUs the
    numbers are the same to the last bit.  Gradients on several devices, experts', and those that are not in single
    precision are left to fairseq's.
    """
    parameters = [params] if isinstance(params, Tensor) else list(params)
    found = [p for p in parameters if p is not None and p.grad is not None]
    together = len({p.device for p in found}) == 1 and all(_single(p.grad) and not hasattr(p, "expert") for p in found)
    if len(found) < 2 or not together:
        return original(parameters, max_norm, aggregate_norm_fn)
    gradients = [p.grad.detach() for p in found]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    norm = aggregate_norm_fn(norm) if aggregate_norm_fn else norm
    if max_norm > 0:
        torch._foreach_mul_(gradients, (float(max_norm) / (norm + 1e-6)).clamp_(max=1))
    return norm
