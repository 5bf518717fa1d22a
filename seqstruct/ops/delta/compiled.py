"""The rule by a kernel on CPUs, one row of keys after the other: O(T steps K V) time, whatever the decays.

Between the passes it keeps what was written, before beta, and no memory: the backward pass goes back with the memory's
gradient alone, and then writes the memory again.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from seqstruct.ops.compiled import Operator
from seqstruct.ops.first_derivatives import first_derivatives_only


def compiled_rule(
    query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor | None, beta: Tensor | None, memory: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """As `rule.gated_delta_rule`; first derivatives only.  Of no queries, B H 0 K, no readings."""
    return RULE.call(query, key, value, log_decay, beta, memory, steps)[:2]


def _fake(
    query: Tensor, key: Tensor, value: Tensor, log_decay: Any, beta: Tensor | None, memory: Tensor, steps: int
) -> tuple[Tensor, ...]:
    B, H, R, V = value.shape
    shapes = (B, H, query.size(2), V), memory.shape, (B, H, 0 if beta is None else R, V)
    return tuple(value.new_empty(shape) for shape in shapes)


def _setup(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    *given, ctx.steps = inputs
    _, memory_end, residual = output
    ctx.save_for_backward(*given, memory_end, residual)
    ctx.mark_non_differentiable(residual)
    ctx.set_materialize_grads(False)


@first_derivatives_only
def _backward(ctx: Any, d_output: Tensor | None, d_end: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
    saved = ctx.saved_tensors
    *_, log_decay, beta, _, _, _ = saved
    *grads, d_decay, d_beta, d_memory = RULE_BACKWARD.call(d_output, d_end, *saved, ctx.steps)
    return *grads, None if log_decay is None else d_decay, None if beta is None else d_beta, d_memory, None


def _fake_backward(
    d_output: Any, d_end: Any, query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor | None,
    beta: Tensor | None, memory: Tensor, *rest: Any,
) -> tuple[Tensor, ...]:
    given = query, key, value, log_decay, beta, memory
    return tuple(value.new_empty((0,) if x is None else x.shape) for x in given)


def compiled_scores(
    query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor | None, memory: Tensor
) -> tuple[Tensor, Tensor]:
    """The memory's products with queries B H T V, B H T K, and the last memory B H K V.

    The rest as of `rule.gated_delta_rule` without beta, one step a token; first derivatives only.
    """
    return SCORES.call(query, key, value, log_decay, memory)


def _fake_scores(query: Tensor, key: Tensor, value: Tensor, log_decay: Any, memory: Tensor) -> tuple[Tensor, ...]:
    return key.new_empty(key.shape), memory.new_empty(memory.shape)


def _setup_scores(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, output[1])
    ctx.set_materialize_grads(False)


@first_derivatives_only
def _backward_scores(ctx: Any, d_scores: Tensor | None, d_end: Tensor | None) -> tuple[Tensor | None, ...]:
    """Summed with weights d_scores, scores are the readings of queries d_scores summed with weights `query`."""
    query, key, value, log_decay, memory, end = ctx.saved_tensors
    given = key, value, log_decay, None, memory
    d_query = None if d_scores is None else RULE.call(d_scores, *given, 1)[0]
    asked, weights = (key[:, :, :0], None) if d_scores is None else (d_scores, query)
    grads = RULE_BACKWARD.call(weights, d_end, asked, *given, end, value[:, :, :0], 1)
    _, d_key, d_value, d_decay, _, d_memory = grads
    return d_query, d_key, d_value, None if log_decay is None else d_decay, d_memory


RULE = Operator("delta_rule", _fake, _setup, _backward)
RULE_BACKWARD = Operator("delta_rule_backward", _fake_backward)
SCORES = Operator("delta_rule_scores", _fake_scores, _setup_scores, _backward_scores)
