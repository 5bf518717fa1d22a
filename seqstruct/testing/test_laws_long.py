"""Laws of every registered mechanism at a length of three times whatever it cuts a sequence by, and more."""

from __future__ import annotations

import pytest
import torch

from seqstruct.attention import Site
from seqstruct.attention.blocks import bigbird
from seqstruct.ops.memory import window as local_attention
from seqstruct.testing.cases import (
    LENGTH,
    LONG,
    TOLERANCE,
    Case,
    DrawnInputs,
    build,
    distinct,
    gradients,
    inputs,
    output,
    padded,
    stepwise,
)
from seqstruct.testing.test_laws import each_row_is_as_if_alone

ALL, STREAMING = pytest.mark.law(long=True), pytest.mark.law(streaming=True, long=True)
BATCH, CUT = 2, 40


@pytest.fixture(autouse=True)
def smaller_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cuts a dilated window's share of the tokens, and a sequence of blocks."""
    monkeypatch.setattr(local_attention, "LEAST_BLOCK", 8)
    monkeypatch.setattr(bigbird, "PERIOD", 8)


def long_inputs(case: Case, generator: torch.Generator) -> DrawnInputs:
    return inputs(case, generator, BATCH, LENGTH if case.site is Site.CROSS else LONG, LONG)


@STREAMING
def test_parallel_equals_step_by_step(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = long_inputs(case, generator)
    forms = type(attention).forward, stepwise
    results = [form(attention, query, memory, memory)[0].output for form in forms]
    torch.testing.assert_close(*results, **TOLERANCE)
    both = (gradients(result, attention, *distinct(query, memory)) for result in results)
    torch.testing.assert_close(*both, **TOLERANCE)


@STREAMING
def test_split_and_resume(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = long_inputs(case, generator)
    state, parts = attention.initial_state(BATCH), []
    with torch.no_grad():
        if attention.left_to_right:
            for part in (query[:, :CUT], query[:, CUT:]):
                reading, state = attention(part, part, part, state=state)
                parts.append(reading.output)
        else:
            for part in [memory] if attention.at_once else [memory[:, :CUT], memory[:, CUT:]]:
                state = attention.write(state, part, part)
            parts.append(attention.read(state, query).output)
    torch.testing.assert_close(torch.cat(parts, 1), output(attention, query, memory).detach(), **TOLERANCE)


@STREAMING
def test_the_future_is_invisible(case: Case, generator: torch.Generator) -> None:
    """But for rounding where tokens are sorted by bucket, among others in another order."""
    attention = build(case, generator)
    if not attention.left_to_right:
        return
    query = long_inputs(case, generator).query.detach()
    changed = query.clone()
    changed[:, CUT:] = torch.randn(changed[:, CUT:].shape, generator=generator, dtype=changed.dtype)
    with torch.no_grad():
        before, after = (output(attention, x, x)[:, :CUT] for x in (query, changed))
    torch.testing.assert_close(before, after, rtol=0, atol=1e-14 if case.name == "lsh" else 0)


@ALL
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_invisible(case: Case, side: str, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = long_inputs(case, generator)
    lengths = [LONG - 2 * CUT, LONG - 1]
    filled, mask = padded(memory, lengths, side, LONG, generator)
    with torch.no_grad():
        result = output(attention, filled if query is memory else query, filled, mask)
        each_row_is_as_if_alone(attention, query, memory, lengths, mask, result)
