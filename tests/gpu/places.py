"""Where the tests of kernels run, and how they compare: CUDA, or the CPU by Triton's interpreter."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor

from seqstruct.ops import gpu

INTERPRETED = gpu.installed() and gpu.interpreted()
DEVICE = torch.device("cpu" if INTERPRETED or not torch.cuda.is_available() else "cuda")
needs_triton = pytest.mark.skipif(
    not INTERPRETED and not (gpu.installed() and torch.cuda.is_available()),
    reason="needs Triton, and a CUDA device or TRITON_INTERPRET=1",
)
WAITING = {  # mechanisms whose host waits for the device: which rows leave the range decides how these are summed
    "alignment_crf", "constituency", "dependency", "nondeterministic_stack", "segmentation", "soft_children",
}
CLOSE = {torch.float32: 2e-5, torch.bfloat16: 3e-2}  # of the norm of what is right


@pytest.fixture(autouse=True)
def unwritten():
    """Memory that was not written to holds NaN."""
    before = torch.utils.deterministic.fill_uninitialized_memory, torch.are_deterministic_algorithms_enabled()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*deterministic")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True
        yield
    torch.utils.deterministic.fill_uninitialized_memory = before[0]
    torch.use_deterministic_algorithms(before[1])


def draw(seed: int, *shape: int) -> Tensor:
    """Normal numbers, float64, on the CPU."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def assert_once(result: Tensor, leaf: Tensor) -> None:
    """No graph of the derivative is made."""
    with pytest.raises(RuntimeError, match="has first derivatives only"):
        torch.autograd.grad(result.sum(), leaf, create_graph=True)


def assert_alike(kernel, naive, inputs: list[Tensor], dtype: torch.dtype = torch.float32) -> None:
    """Values, and gradients of a fixed sum of all of them: a function by kernels, and its definition in float64.

    Each takes all inputs; kernels get those of `dtype` on the device.
    """
    results = []
    for function, here in ((naive, torch.float64), (kernel, dtype)):
        device = "cpu" if function is naive else DEVICE
        leaves = [x.to(here).double().to(device, here).requires_grad_() for x in inputs]
        if function is naive:  # of the same numbers
            leaves = [x.to(dtype).double().requires_grad_() for x in inputs]
        found = function(*leaves)
        if function is kernel:
            assert_once(found[0], leaves[1])
            found = function(*leaves)
        total = sum((x * torch.linspace(-1, 2, x.numel()).to(dtype).to(x).view(x.shape)).sum() for x in found)
        results.append([*found, *torch.autograd.grad(total, leaves, allow_unused=True)])
    for number, (right, ours) in enumerate(zip(*results, strict=True)):
        assert (right is None) == (ours is None), number
        if right is not None:
            error = (ours.detach().cpu().double() - right.detach()).norm() / right.detach().norm().clamp_min(1e-12)
            assert error < CLOSE[dtype], (number, error)
