"""Every mechanism on a CUDA device: the CPU's numbers, kernels' numbers, and where the host waits for the device."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from seqstruct.attention import ATTENTIONS, Site
from seqstruct.testing.cases import build, cases, inputs
from tests.gpu.places import WAITING

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

CASES = [case for case in cases() if case.options.get("features") != 2048]  # thousands of features need float64


def run(case, device: str, dtype: torch.dtype) -> list[Tensor]:
    """Output, and gradients of the inputs and parameters."""
    generator = torch.Generator().manual_seed(5)
    attention = copy.deepcopy(build(case, generator)).to(device, dtype)
    query, memory = inputs(case, generator, batch=3)
    x, y = query.detach().to(device, dtype).requires_grad_(), memory.detach().to(device, dtype).requires_grad_()
    y = x if memory is query else y
    mask = torch.zeros(y.shape[:2], dtype=torch.bool)
    mask[1, -2:] = True
    leaves = [x, *([] if y is x else [y]), *attention.parameters()]
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        output = attention(x, y, y, mask.to(device))[0].output
        pull = torch.linspace(-1, 2, output.numel(), dtype=dtype).view(output.shape)
        return [output, *torch.autograd.grad((output * pull.to(device)).sum(), leaves, allow_unused=True)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_devices_agree(case):
    for ours, right in zip(run(case, "cuda", torch.float64), run(case, "cpu", torch.float64), strict=True):
        assert (ours is None) == (right is None)
        if right is not None:
            torch.testing.assert_close(ours.cpu(), right, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("case", [c for c in CASES if c.name not in ("lsh", "clustering", "rfa")], ids=str)
def test_float32_is_close(case):
    for ours, right in zip(run(case, "cuda", torch.float32), run(case, "cuda", torch.float64), strict=True):
        if right is not None:
            assert (ours - right).norm() <= 2e-3 * right.norm() + 1e-5


@pytest.mark.parametrize("name", sorted(ATTENTIONS))
def test_hosts_wait_where_they_are_said_to(name):
    waited = False
    for case in (case for case in CASES if case.name == name):
        attention = build(case, torch.Generator().manual_seed(5)).to("cuda", torch.float32)
        query, memory = (x.detach().to("cuda", torch.float32) for x in inputs(case, torch.Generator().manual_seed(5)))
        memory = memory.requires_grad_() if case.site is Site.CROSS else query.requires_grad_()
        mask = torch.zeros(memory.shape[:2], dtype=torch.bool, device="cuda")
        attention(query, memory, memory, mask)[0].output.sum().backward()  # compiles kernels
        torch.cuda.set_sync_debug_mode("error")
        try:
            attention(query, memory, memory, mask)[0].output.sum().backward()
        except RuntimeError as error:
            if "synchroniz" not in str(error):
                raise
            waited = True
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert waited == (name in WAITING)
