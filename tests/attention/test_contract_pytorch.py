"""Laws of the mechanisms that have kernels, with PyTorch's operators in their place."""

from __future__ import annotations

import pytest
import torch

from seqstruct.attention import get_attention
from seqstruct.attention.kernel.base import KernelAttention
from seqstruct.attention.memory.base import BoundedMemoryAttention
from seqstruct.ops.compiled import VARIABLE
from seqstruct.testing import test_laws
from seqstruct.testing.cases import LENGTH, Case, cases

STACKS = ("nondeterministic_stack", "superposition_stack")
CASES = [
    case
    for case in cases(streaming=True)
    if case.name in STACKS or issubclass(get_attention(case.name), (KernelAttention, BoundedMemoryAttention))
]


@pytest.fixture(autouse=True)
def _off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")


def test_all_that_have_kernels_are_here() -> None:
    assert {"abc_mlp", "linear", "rfa", "t2r", "performer", *STACKS} <= {case.name for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_parallel_equals_step_by_step(case: Case, generator: torch.Generator) -> None:
    test_laws.test_parallel_equals_step_by_step(case, LENGTH, generator)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_split_anywhere_and_resume(case: Case, generator: torch.Generator) -> None:
    test_laws.test_split_anywhere_and_resume(case, (1, 6), generator)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_steps_without_gradients_are_the_same(case: Case, generator: torch.Generator) -> None:
    test_laws.test_steps_without_gradients_are_the_same(case, generator)
