"""The laws every registered mechanism obeys, at every site it claims."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn

from seqstruct.attention import Attention, Site
from seqstruct.attention.states import select_rows
from seqstruct.bridge.adapter import AttentionAdapter, reorder_state
from seqstruct.testing.cases import (
    ALL,
    BATCH,
    LENGTH,
    STREAMING,
    TOLERANCE,
    Case,
    build,
    distinct,
    forms,
    gradients,
    in_type,
    inputs,
    output,
    padded,
    stepwise,
)


@STREAMING
@pytest.mark.parametrize("length", [1, LENGTH])
def test_parallel_equals_step_by_step(case: Case, length: int, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator, length=length)
    parallel = output(attention, query, memory)
    stepped = stepwise(attention, query, memory, memory)[0].output
    torch.testing.assert_close(parallel, stepped, **TOLERANCE)
    found, wanted = (gradients(result, attention, *distinct(query, memory)) for result in (parallel, stepped))
    torch.testing.assert_close(found, wanted, **TOLERANCE)


@STREAMING
@pytest.mark.parametrize("cuts", [(0, 3, 3), (1, 6)])
def test_split_anywhere_and_resume(case: Case, cuts: tuple[int, ...], generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    whole = output(attention, query, memory)
    bounds = [0, *cuts, memory.size(1)]
    if attention.left_to_right:
        state, parts = attention.initial_state(BATCH), []
        for start, end in zip(bounds, bounds[1:], strict=False):
            part = query[:, start:end]
            reading, state = attention(part, part, part, state=state)
            parts.append(reading.output)
        result = torch.cat(parts, 1)
    else:
        state = attention.initial_state(BATCH)
        with pytest.raises(ValueError, match="at once") if attention.at_once else nullcontext():
            for start, end in zip(bounds, bounds[1:], strict=False):
                state = attention.write(state, memory[:, start:end], memory[:, start:end])
        if attention.at_once:
            state = attention.write(attention.initial_state(BATCH), memory, memory)
        result = attention.read(state, query).output
    torch.testing.assert_close(result, whole, **TOLERANCE)
    leaves = distinct(query, memory)
    found, wanted = gradients(result, attention, *leaves), gradients(whole, attention, *leaves)
    torch.testing.assert_close(found, wanted, **TOLERANCE)


@STREAMING
def test_steps_without_gradients_are_the_same(case: Case, generator: torch.Generator) -> None:
    """Writing in place, as decoding does, changes no number."""
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    with torch.no_grad():
        stepped = stepwise(attention, query, memory, memory)[0].output
        torch.testing.assert_close(stepped, output(attention, query, memory), **TOLERANCE)


@STREAMING
def test_steps_have_the_gradient_of_each_tensor_alone(case: Case, generator: torch.Generator) -> None:
    """With all else frozen, as where few kinds of parameters are tuned."""
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    leaves = [*distinct(query, memory), *attention.parameters()]
    wanted = gradients(stepwise(attention, query, memory, memory)[0].output, attention, *distinct(query, memory))
    for leaf, gradient in zip(leaves, wanted, strict=True):
        for other in leaves:
            other.requires_grad_(other is leaf)
        result = stepwise(attention, query, memory, memory)[0].output
        found = torch.zeros_like(leaf)
        if result.requires_grad:
            found, *_ = gradients(result, nn.Module(), leaf)
        torch.testing.assert_close(found, gradient, **TOLERANCE)


@STREAMING
def test_steps_without_gradients_spoil_none_of_those_before(case: Case, generator: torch.Generator) -> None:
    """These are right, or refused as torch refuses those of what was written over."""
    if case.site is not Site.DECODER_SELF:
        return
    attention = build(case, generator)
    x, _ = inputs(case, generator)
    state, outputs = attention.initial_state(BATCH), []
    for now in x[:, :3].split(1, 1):
        reading, state = attention.step(state, now, now, now)
        outputs.append(reading.output)
    with torch.no_grad():
        attention.step(state, *[x[:, 3:4]] * 3)
    wanted = gradients(output(attention, x[:, :3], x[:, :3]), attention, x)
    try:
        found = gradients(torch.cat(outputs, 1), attention, x)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error) or "has been modified inplace" in str(error)
    else:
        torch.testing.assert_close(found, wanted, **TOLERANCE)


@ALL
def test_the_future_is_invisible(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    if not attention.left_to_right:
        other = output(attention, query, memory + torch.linspace(0, 1, memory.size(1))[:, None])
        assert (other - output(attention, query, memory)).abs().max() > 1e-6
        return
    changed = query.detach().clone()
    changed[:, 4:] = torch.randn(changed[:, 4:].shape, generator=generator, dtype=changed.dtype)
    before, after = output(attention, query, query), output(attention, changed, changed)
    torch.testing.assert_close(before[:, :4], after[:, :4], rtol=0, atol=0)
    assert (before[:, 4:] - after[:, 4:]).abs().amax((0, 2)).min() > 1e-9


def each_row_is_as_if_alone(
    attention: Attention, query: Tensor, memory: Tensor, lengths: list[int], mask: Tensor, result: Tensor
) -> None:
    """Of the results over padded memories; lengths: of these without padding."""
    for row, length in enumerate(lengths):
        own = memory[row : row + 1, :length]
        alone = output(attention, own if query is memory else query[row : row + 1], own)
        real = result[row : row + 1][:, ~mask[row]] if query is memory else result[row : row + 1]
        torch.testing.assert_close(real, alone, **TOLERANCE)


@ALL
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_invisible(case: Case, side: str, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    lengths = [1, 3, memory.size(1), 2, 5]
    filled, mask = padded(memory, lengths, side, memory.size(1) + 2, generator)
    queries = filled if query is memory else query
    for form in forms(attention):
        result = form(attention, queries, filled, filled, mask)[0].output
        each_row_is_as_if_alone(attention, query, memory, lengths, mask, result)


@STREAMING
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_that_was_written_is_invisible(case: Case, side: str, generator: torch.Generator) -> None:
    """A reading of the state, where the query is that of the last token or of another sequence.

    In LSH attention the query is that of the last cell, and reads nothing where that is padding.
    """
    if case.site is Site.ENCODER_SELF:
        return
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    lengths = [1, 3, memory.size(1), 2, 5]
    filled, mask = padded(memory, lengths, side, memory.size(1) + 2, generator)
    found = attention.read(attention.write(attention.initial_state(BATCH), filled, filled, mask), query[:, :1]).output
    if case.name == "lsh" and side == "right":
        assert not found.any()
        return
    for row, length in enumerate(lengths):
        own = memory[row : row + 1, :length]
        alone = attention.read(attention.write(attention.initial_state(1), own, own), query[row : row + 1, :1]).output
        torch.testing.assert_close(found[row : row + 1], alone, **TOLERANCE)


@ALL
def test_a_fully_padded_row_reads_zeros(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    mask = torch.zeros(memory.shape[:2], dtype=torch.bool)
    mask[2] = True
    for form in forms(attention):
        result = form(attention, query, memory, memory, mask)[0].output
        assert torch.equal(result[2], torch.zeros_like(result[2]))
        assert result[3].abs().max() > 0
        for gradient in gradients(result, attention, *distinct(query, memory)):
            assert gradient.isfinite().all()


@ALL
def test_what_stands_at_padding_is_invisible(case: Case, generator: torch.Generator) -> None:
    """Enormous or no number at all: readings of tokens and all gradients are exactly those over zeros."""
    attention = build(case, generator, torch.float32)
    query, memory = in_type(case, generator, torch.float32)
    standing = torch.zeros(memory.shape[:2])
    standing[0, :2], standing[1, -3:], standing[2], standing[3, -1:] = 1e30, math.inf, math.nan, -math.inf
    mask = standing != 0

    def results(form: Callable, fill: Tensor) -> list[Tensor]:
        filled = torch.where(mask.unsqueeze(-1), fill.unsqueeze(-1), memory.detach()).requires_grad_()
        queries = filled if query is memory else query
        result = form(attention, queries, filled, filled, mask)[0].output
        if query is memory:
            result = result.masked_fill(mask.unsqueeze(-1), 0.0)
        return [result, *gradients(result, attention, *distinct(queries, filled))]

    for form in forms(attention):
        for found, wanted in zip(results(form, standing), results(form, 0 * mask), strict=True):
            assert torch.equal(found, wanted)


@ALL
def test_rows_of_a_batch_are_independent(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    order = torch.tensor([3, 0, 4, 1, 2])
    permuted = query[order]
    result = output(attention, permuted, permuted if query is memory else memory[order])
    torch.testing.assert_close(result, output(attention, query, memory)[order], **TOLERANCE)


@STREAMING
@pytest.mark.parametrize("order", [[4, 3, 2, 1, 0], [1], [0, 0, 0, 4, 4, 4, 1]])
def test_states_are_reordered_in_the_middle(case: Case, order: list[int], generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    rows = torch.tensor(order)
    with torch.no_grad():
        state = attention.write(attention.initial_state(BATCH), memory[:, :4], memory[:, :4])
        state = reorder_state(state, rows)
        fresh = torch.randn(len(order), 3, memory.size(2), generator=generator, dtype=memory.dtype)
        fresh = fresh[:, : 0 if attention.at_once else 3]
        state = attention.write(state, fresh, fresh)
        queries = query[rows][:, :1]
        found = attention.read(state, queries).output
        joined = torch.cat([memory[rows][:, :4], fresh], 1)
        wanted = attention.read(attention.write(attention.initial_state(len(order)), joined, joined), queries).output
    torch.testing.assert_close(found, wanted, **TOLERANCE)


@STREAMING
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("order", [None, [0, 0, 0, 4, 4, 4, 1]])
def test_one_step_selects_writes_and_reads(
    case: Case, order: list[int] | None, recorded: bool, generator: torch.Generator
) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    rows = torch.arange(BATCH) if order is None else torch.tensor(order)
    fresh = torch.randn(len(rows), 1, memory.size(2), generator=generator, dtype=memory.dtype)
    mask = torch.zeros(len(rows), 1, dtype=torch.bool)
    mask[1] = True
    now = fresh if query is memory else query[rows][:, :1]

    def written() -> object:
        before = memory[:, : 0 if attention.at_once else 4]
        return attention.write(attention.initial_state(BATCH), before, before)

    with torch.set_grad_enabled(recorded):
        state = attention.write(select_rows(written(), rows), fresh, fresh, mask)
        wanted = attention.read(state, now).output, attention.read(state, 2 * now).output
        given = None if order is None else rows
        reading, state = attention.step(written(), now, fresh, fresh, mask, order=given)
        found = reading.output, attention.read(state, 2 * now).output
    torch.testing.assert_close(found, wanted, **TOLERANCE)


@pytest.mark.law(streaming=True, decoder=True)
def test_adapter_goes_on_from_rows_in_another_order(case: Case, generator: torch.Generator) -> None:
    """Two orders one after the other, as where a sentence ends and beams change places."""
    attention = build(case, generator)
    adapter = AttentionAdapter(attention, 0)
    query, memory = inputs(case, generator)
    static = case.site is Site.CROSS
    orders = torch.tensor([3, 3, 0, 1]), torch.tensor([1, 2, 2])
    chosen = orders[0][orders[1]]
    incremental: dict = {}
    with torch.no_grad():
        for t in range(3):
            now = memory if static else memory[:, t : t + 1]
            adapter(*(x.transpose(0, 1) for x in (query[:, t : t + 1], now, now)), None, incremental, static_kv=static)
        for order in orders:
            adapter.reorder_incremental_state(incremental, order)
        last = query[chosen][:, 3:4]
        now = memory[chosen] if static else last
        found, _ = adapter(*(x.transpose(0, 1) for x in (last, now, now)), None, incremental, static_kv=static)
        if static:
            state = attention.write(attention.initial_state(3), now, now)
            wanted = attention.read(state, last, torch.full((3, 1), 3)).output
        else:
            wanted = attention(*[memory[chosen][:, :4]] * 3)[0].output[:, 3:]
    torch.testing.assert_close(found.transpose(0, 1), wanted, **TOLERANCE)


@STREAMING
def test_adapter_step_by_step_equals_teacher_forcing(case: Case, generator: torch.Generator) -> None:
    """At tokens: at self-attention a query at padding may read anything; across, the mask is of keys alone."""
    attention = build(case, generator)
    adapter = AttentionAdapter(attention, 0)
    query, memory = inputs(case, generator)
    first, second = query.transpose(0, 1), memory.transpose(0, 1)  # T B C
    mask = torch.zeros(memory.shape[:2], dtype=torch.bool)
    causal = torch.full((LENGTH, LENGTH), float("-inf")).triu(1) if attention.shape.causal else None
    if case.site is Site.ENCODER_SELF:
        whole, _ = adapter(first, second, second, mask, need_weights=False)
        torch.testing.assert_close(whole.transpose(0, 1), output(attention, query, memory), **TOLERANCE)
        return
    mask[1, -2:] = True
    static = case.site is Site.CROSS
    whole, _ = adapter(first, second, second, mask, attn_mask=causal, static_kv=static)
    incremental: dict = {}
    with torch.no_grad():
        for t in range(LENGTH):
            now = second if static else second[t : t + 1]
            seen = mask if static else mask[:, t : t + 1]
            step, _ = adapter(first[t : t + 1], now, now, seen, incremental_state=incremental, static_kv=static)
            found, wanted = (x if static else x[~seen[:, 0]] for x in (step[0], whole[t].detach()))
            torch.testing.assert_close(found, wanted, **TOLERANCE)
            adapter.reorder_incremental_state(incremental, torch.arange(BATCH))


@ALL
def test_the_empty_sequence(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator, length=0)
    assert output(attention, query, memory).shape == query.shape
    empty = memory[:, :0]
    queries = empty if query is memory else inputs(case, generator).query
    result = output(attention, queries, empty)
    assert torch.equal(result, torch.zeros_like(result))


@ALL
def test_an_empty_batch(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator)
    full = inputs(case, generator)
    query = full.query[:0]
    memory = query if full.memory is full.query else full.memory[:0]
    for mask in (None, torch.zeros(memory.shape[:2], dtype=torch.bool)):
        for form in forms(attention):
            with torch.no_grad():
                assert form(attention, query, memory, memory, mask)[0].output.shape == query.shape
            assert form(attention, query, memory, memory, mask)[0].output.shape == query.shape
        for gradient in gradients(output(attention, query, memory, mask), attention, query):
            assert torch.equal(gradient, torch.zeros_like(gradient))
    if attention.streaming:
        nothing = torch.zeros(0, dtype=torch.long)
        state = reorder_state(attention.write(attention.initial_state(BATCH), full.memory, full.memory), nothing)
        reading, state = attention.step(state, query[:, :1], memory[:, :1], memory[:, :1], order=nothing)
        assert reading.output.shape == attention.read(state, query[:, :1]).output.shape == (0, 1, query.size(2))


@ALL
def test_dropout_of_weights_is_as_declared(case: Case, generator: torch.Generator) -> None:
    query, memory = inputs(case, generator)
    attention = build(case, generator).train()
    results = []
    for dropout in (0.0, 0.7):
        attention.shape = dataclasses.replace(attention.shape, dropout=dropout)
        with torch.random.fork_rng():
            torch.manual_seed(3)
            results.append(output(attention, query, memory))
    assert torch.equal(*results) != attention.drops_weights
