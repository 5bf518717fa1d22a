"""The backward passes of compiled kernels refuse a graph too."""

from __future__ import annotations

import pytest

from seqstruct.ops.compiled import Operator
from tests.ops.test_first_derivatives import refused

CASES = [
    "pushdown_stack", "superposition_stack", "causal_bounded_memory", "causal_linear_attention", "chain_marginals",
    "projective_marginals", "constituency_marginals",
]  # fmt: skip
TWICE = {"seqstruct_spanning_marginals"}  # it differentiates PyTorch's form then


@pytest.mark.filterwarnings("ignore:Using backward")
def test_whatever_hangs_on_them_refuses_a_graph(compiled):
    compiled(True)
    used = set().union(*map(refused, CASES))
    differentiable = {x.name.replace("::", "_") for x in Operator.declared if x.backward is not None}
    assert used == {f"compiled.{name}" for name in differentiable - TWICE}
