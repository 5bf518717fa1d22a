"""Sums over all runs in few operators, for devices where each is a launch, and where the host may not look at them."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from seqstruct.benchmarks.timing import Audit
from seqstruct.ops.pushdown import pushdown_stack, stack, transition_count
from seqstruct.ops.pushdown.launches import RunsByRow
from seqstruct.ops.pushdown.scaled import ScaledRuns

LOOKS = {"aten._local_scalar_dense", "aten.equal", "aten.is_nonzero", "aten.item", "aten.masked_select", "aten.nonzero"}
MOST = 8730 // 3  # operators, views among them, of both passes at length 80


@pytest.mark.parametrize(("B", "T", "S", "Q", "m"), [(2, 7, 3, 2, 5), (2, 1, 1, 1, 2), (1, 35, 2, 3, 4)])
def test_rows_are_what_tiles_are(B, T, S, Q, m, generator):
    shapes = (T, B, 2 * S * Q, S * Q), (T, B, S, Q, Q), (T, B, m), (B, m)
    inputs = [torch.rand(*shape, generator=generator, dtype=torch.float64) for shape in shapes]
    inputs = [(x / (2 * S * Q) if x.dim() > 3 else x).requires_grad_() for x in inputs]
    found = [form.apply(*inputs) for form in (RunsByRow, ScaledRuns)]
    weights = torch.randn(found[0].shape, generator=generator, dtype=torch.float64)
    gradients = [torch.autograd.grad((x * weights).sum(), inputs) for x in found]
    torch.testing.assert_close((found[0], *gradients[0]), (found[1], *gradients[1]), rtol=1e-10, atol=1e-12)


def test_operators_on_a_device():
    sizes = (10, 80, transition_count(2, 3)), (10, 80, 5), (5,)
    inputs = [torch.empty(size, device="meta", requires_grad=True) for size in sizes]
    with Audit() as found:
        pushdown_stack(*inputs, states=2, symbols=3).sum().backward()
    assert found.operators <= MOST


def test_rows_out_of_range_where_the_host_may_not_look(generator, monkeypatch):
    logits = torch.randn(2, 3, transition_count(1, 2), generator=generator, dtype=torch.float64)
    logits[0] *= 3000
    pushed, bottom = torch.rand(2, 3, 2, generator=generator).double(), torch.rand(2, generator=generator).double()
    looked = pushdown_stack(logits, pushed, bottom, states=1, symbols=2)
    monkeypatch.setattr(stack, "host_may_look", lambda x: False)
    blind = pushdown_stack(logits, pushed, bottom, states=1, symbols=2)
    assert looked.isfinite().all() and blind[0].isnan().all()
    torch.testing.assert_close(blind[1], looked[1])


class Names(TorchDispatchMode):
    """The operators that run within it, in order."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func.overloadpacket))
        return func(*args, **(kwargs or {}))


def test_the_host_looks_once_after_all_products(generator, monkeypatch):
    """So a device is waited for once, outside of what a CUDA graph may hold: all sums, and the whole backward pass."""
    monkeypatch.setattr(stack, "usable", lambda *tensors: False)
    monkeypatch.setattr(stack, "_scaled_runs", RunsByRow.apply)
    sizes = (2, 7, transition_count(2, 3)), (2, 7, 5), (5,)
    inputs = [torch.randn(size, generator=generator).requires_grad_() for size in sizes]
    with Names() as forward:
        readings = pushdown_stack(*inputs, states=2, symbols=3)
    with Names() as backward:
        readings.sum().backward()
    looks = [i for i, name in enumerate(forward.names) if name in LOOKS]
    products = [i for i, name in enumerate(forward.names) if "bmm" in name]
    assert len(looks) == 1 and looks[0] > products[-1] and not LOOKS.intersection(backward.names)
