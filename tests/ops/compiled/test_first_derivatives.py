"""The backward passes of compiled kernels refuse a graph too."""

from __future__ import annotations

import pytest

from seqstruct.ops.compiled import Operator
from seqstruct.ops.softmax import softmax_attention
from tests.ops.test_first_derivatives import CASES, refused

SHARED = [
    "pushdown_stack", "superposition_stack", "causal_bounded_memory", "causal_linear_attention", "chain_marginals",
    "projective_marginals", "constituency_marginals", "gated_delta_rule", "gated_slots",
]
TWICE = {
    "seqstruct_spanning_marginals",  # it differentiates PyTorch's form then
    "seqstruct_dropped",  # it is linear
}


def of_attention_with_dropout(draw):
    return softmax_attention(draw(1, 2, 5, 3), draw(1, 2, 4, 3), draw(1, 2, 4, 3), dropout=0.3)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_whatever_hangs_on_them_refuses_a_graph(compiled):
    compiled(True)
    used = set().union(*map(refused, [*(CASES[name] for name in SHARED), of_attention_with_dropout]))
    differentiable = {x.name.replace("::", "_") for x in Operator.declared if x.backward is not None}
    assert used == {f"compiled.{name}" for name in differentiable - TWICE}
