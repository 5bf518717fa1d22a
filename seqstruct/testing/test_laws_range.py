"""The laws of numbers that every registered mechanism obeys: large inputs, and modules and passes of few digits."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from seqstruct.attention import Attention, Site
from seqstruct.testing.cases import ALL, Case, build, distinct, forms, gradients, in_type, inputs, output

CHOOSING = {"clustering", "lsh"}  # mechanisms that ask on which side of a border a key lies


def exactly(attention: Attention, *tensors: Tensor) -> list[Tensor]:
    """Output of the parallel form and gradients in float64."""
    attention = copy.deepcopy(attention).double()
    leaves = [x.detach().double().requires_grad_() for x in tensors]
    result = output(attention, leaves[0], leaves[-1])
    return [result, *gradients(result, attention, *leaves)]


@ALL
def test_inputs_times_a_hundred(case: Case, generator: torch.Generator) -> None:
    """Outputs are finite, and gradients wherever float64 has them well in the range of float32."""
    attention = build(case, generator, torch.float32)
    query, memory = in_type(case, generator, torch.float32, 100.0)
    truth = exactly(attention, *distinct(query, memory))
    for form in forms(attention):
        result = form(attention, query, memory, memory)[0].output
        assert result.isfinite().all()
        for found, wanted in zip(
            gradients(result, attention, *distinct(query, memory)), truth[1:], strict=True
        ):
            assert wanted.isfinite().all()
            assert found[wanted.abs() < 1e35].isfinite().all()


@ALL
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_modules_stay_in_their_type_finite_and_close(
    case: Case, dtype: torch.dtype, generator: torch.Generator
) -> None:
    """Where a key falls to the other side of a border by rounding, most outputs are close."""
    attention = build(case, generator, dtype)
    query, memory = in_type(case, generator, dtype)
    exact = exactly(attention, *distinct(query, memory))[0]
    for form in forms(attention):
        result = form(attention, query, memory, memory)[0].output
        assert result.dtype == dtype
        error = (result.double() - exact).abs() / exact.abs().max().clamp_min(1.0)
        assert error.median() < 0.02
        assert case.name in CHOOSING or error.max() < 0.1
        for gradient in gradients(result, attention, *distinct(query, memory)):
            assert gradient.isfinite().all()


@ALL
def test_bfloat16_autocast_stays_finite_and_close(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator, torch.float32)
    query, memory = (x.detach().float() for x in inputs(case, generator))
    memory = query if case.site is not Site.CROSS else memory
    exact = output(attention, query, memory)
    with torch.autocast("cpu", torch.bfloat16):
        rough = output(attention, query, memory)
    assert rough.isfinite().all()
    assert (rough.float() - exact).abs().max() < 0.1 * exact.abs().max().clamp_min(1.0)
