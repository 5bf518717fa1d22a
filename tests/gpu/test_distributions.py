"""Distributions on a CUDA device: the CPU's answers, with lengths and observations that are left on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqstruct.distributions import Alignment
from tests.distributions.structures import FAMILIES
from tests.distributions.test_distributions import DRAWERS, as_parts, drawer
from tests.gpu.places import DEVICE

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)


def answers(family, draw: str, device: torch.device) -> tuple[list[Tensor], list[Tensor]]:
    """What does not depend on which of equal structures is taken, and gradients; whether draws are structures."""
    leaves: list[Tensor] = []

    def draws(*shape: int) -> Tensor:
        leaves.append(pencil(*shape).to(device).requires_grad_())
        return leaves[-1]

    pencil = drawer(*DRAWERS[draw])
    p, q = (family.make(draws, family.lengths, (len(family.lengths),)) for _ in range(2))
    sums = p.log_partition()
    divergence = p.kl_divergence(q)
    found = [sums, p.entropy(), divergence, p.topk(3).scores, *as_parts(p.marginals()), *as_parts(p.max_marginals())]
    samples = p.sample((5,), generator=torch.Generator(device).manual_seed(3))
    inside = [p.contains(x) | sums.isinf() for x in (p.argmax(), samples)]
    finite = sums.masked_fill(sums.isinf(), 0.0).sum() + p.entropy().sum()
    return [*found, *torch.autograd.grad(finite, leaves, allow_unused=True)], inside


@pytest.mark.parametrize("draw", ["ordinary", "holes", "enormous"])
@pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
def test_devices_agree(family, draw):
    (ours, inside), (right, _) = (answers(family, draw, device) for device in (DEVICE, torch.device("cpu")))
    for x, y in zip(ours, right, strict=True):
        assert (x is None) == (y is None)
        if y is not None:
            assert x.device.type == DEVICE.type
            torch.testing.assert_close(x.cpu(), y, rtol=1e-8, atol=1e-8, equal_nan=True)
    assert all(x.all() for x in inside)


def test_the_targets_of_ctc_may_stay_on_the_cpu(generator):
    log_probs = torch.randn(3, 7, 5, generator=generator, dtype=torch.float64).log_softmax(-1)
    targets = torch.randint(1, 5, (3, 2), generator=generator)
    ours, right = (Alignment.ctc(log_probs.to(device), targets).log_partition() for device in (DEVICE, "cpu"))
    torch.testing.assert_close(ours.cpu(), right, rtol=1e-12, atol=0)
