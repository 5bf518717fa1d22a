"""Attention to a memory of a fixed number of slots (Peng 2022, eq. 5.3 to 5.5): rules of writing differ, one read.

    sums (`means=False`):  K_t = sum_s phi_s (x) k_s,   V_t likewise, for controls phi_s of any sign
    means (`means=True`):  K_t = sum_s a_s (x) k_s / sum_s a_s slot by slot,   V_t likewise, for a_s = exp(control_s)
    out_t = softmax(scale K_t q_t) V_t,   scale = D^-1/2

over the steps s written before the reading.  The means are the second form of section 5.4, whose causal reading is
meant here: Table 5.1 taken literally would divide each a_s by its own prefix sum instead.  The thesis has scale 1.
A slot into which nothing was written, that is whose controls all were 0 (sums) or -inf (means), is left out of the
softmax; with `empty_slots` it stays in it with key and value 0, as eq. 5.4 reads literally.  If all slots are empty
the output is 0.

Axis letters: B batch, H heads, T queries, S keys, N slots, D size of a key, E size of a value.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.compiled import usable
from seqstruct.ops.delta import gated_slots
from seqstruct.ops.first_derivatives import first_derivatives_only
from seqstruct.ops.gpu import takes, takes_step
from seqstruct.ops.memory.compiled_bounded_memory import compiled_bounded_memory, write_and_read
from seqstruct.ops.memory.compiled_linear_attention import fits_step
from seqstruct.ops.opaque import opaque

CHUNK = 32
LOWEST = -1e30  # the log-total of a slot that is empty
MOST_RISE = 60.0  # logarithms by which a slot's maximum may rise in one chunk; float32 ends near 87


class BoundedMemory(NamedTuple):
    """key: B H N D and value: B H N E, sums or means; log_total: B H N, LOWEST where empty.

    For means log_total is the logarithm of the sum of weights, for sums it is 0 in slots that were written.
    """

    key: Tensor
    value: Tensor
    log_total: Tensor


def empty_bounded_memory(batch: int, heads: int, slots: int, key_dim: int, value_dim: int, like: Tensor):
    """A memory of empty slots, on the device of `like` and of its precision, float32 at least."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    key = torch.zeros(batch, heads, slots, key_dim, dtype=dtype, device=like.device)
    return BoundedMemory(key, key.new_zeros(batch, heads, slots, value_dim), key.new_full(key.shape[:3], LOWEST))


def write(state: BoundedMemory, key: Tensor, value: Tensor, control: Tensor, means: bool) -> BoundedMemory:
    """Write keys B H S D and values B H S E by controls B H S N (logarithms for means; 0 or -inf writes nothing).

    O(S N (D + E)) time.  The old memory is consumed: written in place where gradients are off.
    """
    recorded = torch.is_grad_enabled()
    if not means:
        used = (control != 0).any(2)
        log_total = state.log_total.masked_fill(used, 0.0)
        by_slot = control.to(key.dtype).transpose(2, 3)  # B H N S
        if recorded:
            return BoundedMemory(state.key + by_slot @ key, state.value + by_slot @ value, log_total)
        sums = (
            memory.flatten(0, 1).baddbmm_(by_slot.flatten(0, 1), new.flatten(0, 1)).unflatten(0, memory.shape[:2])
            for memory, new in ((state.key, key), (state.value, value))
        )
        return BoundedMemory(*sums, log_total)
    if key.size(2) == 1:
        log_total = torch.logaddexp(state.log_total, control.squeeze(2).to(state.log_total.dtype))
        share = (control.squeeze(2) - log_total).exp().to(key.dtype).unsqueeze(-1)  # B H N 1
        if recorded:
            return BoundedMemory(state.key.lerp(key, share), state.value.lerp(value, share), log_total)
        return BoundedMemory(state.key.lerp_(key, share), state.value.lerp_(value, share), log_total)
    if key.size(2) == 0:
        return state
    control = control.contiguous()  # each product would copy weights that are not
    level = torch.maximum(state.log_total, control.amax(2)).detach()
    left, weights = (state.log_total - level).exp(), (control - level.unsqueeze(2)).exp_()
    total = left + weights.sum(2)
    log_total = (level + total.log()).to(state.log_total.dtype)
    by_slot = weights.to(key.dtype).transpose(2, 3)  # B H N S
    left, total = (x.to(key.dtype).unsqueeze(-1) for x in (left, total))
    sums = (memory * left + by_slot @ new for memory, new in ((state.key, key), (state.value, value)))
    return BoundedMemory(*(x / total for x in sums), log_total)


def read(state: BoundedMemory, query: Tensor, empty_slots: bool = False) -> Tensor:
    """B H T E for queries B H T D, in O(T N (D + E)) time."""
    logits = (query * query.size(-1) ** -0.5) @ state.key.transpose(-1, -2)
    if not empty_slots:
        logits = logits.masked_fill((state.log_total == LOWEST).unsqueeze(2), LOWEST)
    return logits.softmax(-1) @ state.value


def step(
    state: BoundedMemory,
    order: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    control: Tensor,
    means: bool,
    empty_slots: bool = False,
) -> tuple[Tensor, BoundedMemory]:
    """`write` of one key into rows `order` (B long; None: all) of the memory, then `read` for one query.

    Arguments as theirs, with S = T = 1; output B H 1 E and the memory.  Compiled kernels choose, write and read in one
    pass.
    """
    given = query, key, value, control.to(state.log_total.dtype)
    if takes_step(None, *given, *state):
        from seqstruct.ops.memory.triton_steps import step_bounded

        output, *memory = step_bounded(state, order, *given, means, empty_slots)
        return output, BoundedMemory(*memory)
    if fits_step(None, *given, *state):
        output, *memory = write_and_read(state, order, *given, means, empty_slots)
        return output, BoundedMemory(*memory)
    if order is not None:
        state = BoundedMemory(*(x.index_select(0, order) for x in state))
    state = write(state, key, value, control, means)
    return read(state, query, empty_slots), state


def anything_written(state: BoundedMemory) -> Tensor:
    """B H bool: whether some slot is not empty."""
    return (state.log_total != LOWEST).any(-1)


def causal_bounded_memory(
    state: BoundedMemory, query: Tensor, key: Tensor, value: Tensor, control: Tensor, means: bool,
    empty_slots: bool = False,
) -> tuple[Tensor, BoundedMemory]:
    """Write each step, then read for its query: output B H T E and the memory at the end.

    query, key: B H T D; value: B H T E, of the memory's dtype; control: B H T N, of that dtype or float64.
    In chunks of CHUNK steps, shorter ones where a control rises steeply: O(T (CHUNK + N) (D + E)) time;
    O(T (D + E + N) + T/CHUNK N (D + E)) memory with the backward pass, which is written by hand and recomputes what
    happens inside a chunk.  Differentiable once.
    Elsewhere than on the CPU means are slots that decay (`in_decaying_slots`), without a look at what controls hold.
    """
    if query.device.type != "cpu" or takes(query, key, value, *state):
        return in_decaying_slots(state, query, key, value, control, means, empty_slots)
    heads = query.shape[:2]
    level = state.log_total.detach()
    key_sum, value_sum = state.key, state.value
    if means:
        # A slot's total relative to its level: 1, with the gradient of the log-total.
        total = (state.log_total - level).exp().masked_fill(level == LOWEST, 0.0)
        key_sum, value_sum = key_sum * total.unsqueeze(-1), value_sum * total.unsqueeze(-1)
    else:
        total = (level != LOWEST).to(level.dtype)
    tensors = [x.flatten(0, 1).contiguous() for x in (query, key, value, control, key_sum, value_sum, total, level)]
    compiled = control.dtype in (query.dtype, torch.float64) and usable(*tensors[:3], *tensors[4:])
    function = compiled_bounded_memory if compiled else _in_chunks
    output, *ends = function(*tensors, means, empty_slots)
    key_end, value_end, total_end, level_end = (x.unflatten(0, heads) for x in ends)
    output = output.unflatten(0, heads)
    blank = total_end == 0
    if not means:
        return output, BoundedMemory(key_end, value_end, torch.zeros_like(total_end).masked_fill(blank, LOWEST))
    divisor = total_end.masked_fill(blank, 1.0)
    log_total = (level_end.to(divisor.dtype) + divisor.log()).masked_fill(blank, LOWEST)
    divisor = divisor.unsqueeze(-1)
    return output, BoundedMemory(key_end / divisor, value_end / divisor, log_total)


def in_decaying_slots(
    state: BoundedMemory, query: Tensor, key: Tensor, value: Tensor, control: Tensor, means: bool, empty_slots: bool
) -> tuple[Tensor, BoundedMemory]:
    """As `causal_bounded_memory`, as a case of `gated_slots` whose decays keep a slot's total at 1:

    with l_t the logarithm of what was written up to t, V_t = exp(l_{t-1} - l_t) V_{t-1} + exp(control_t - l_t) v_t.
    """
    dtype, size = state.key.dtype, query.size(3)
    control = control.double() if means else control  # differences of logarithms
    first = state.log_total.to(control.dtype).unsqueeze(2)
    if means:
        first = torch.where(first == LOWEST, LOWEST, first)  # no gradient goes to a slot without a total
        totals = torch.cat([first, control], 2).mT.logcumsumexp(3).mT  # scans along the last axis are fast
        log_decay = (totals[:, :, :-1] - totals[:, :, 1:]).clamp(min=LOWEST, max=0.0).to(dtype)
        entering, written = (control - totals[:, :, 1:]).exp(), totals > LOWEST / 2
    else:
        log_decay, entering = None, control
        written = torch.cat([first != LOWEST, control != 0], 2).cummax(2).values
    output, memory = gated_slots(
        query * size**-0.5, key, value, entering.to(dtype), log_decay, torch.cat([state.key, state.value], 3),
        None if empty_slots else ~written[:, :, 1:],
    )
    log_total = totals[:, :, -1].to(dtype) if means else torch.where(written[:, :, -1], 0.0, first[:, :, 0]).to(dtype)
    return output, BoundedMemory(*memory.split([size, value.size(3)], 3), log_total)


def _fake_chunks(query: Tensor, key: Tensor, value: Tensor, control: Tensor, *others: Any) -> tuple[Tensor, ...]:
    *ends, level, means, _ = others
    ends = [value, *ends, level.to(torch.promote_types(level.dtype, control.dtype)) if means else level]
    return tuple(x.new_empty(x.shape) for x in ends)


@opaque(_fake_chunks)
def _in_chunks(
    query: Tensor, key: Tensor, value: Tensor, control: Tensor, key_memory: Tensor, value_memory: Tensor, total: Tensor,
    level: Tensor, means: bool, empty: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return _CausalBoundedMemory.apply(query, key, value, control, key_memory, value_memory, total, level, means, empty)


def _bounds(control: Tensor, level: Tensor, means: bool) -> tuple[list[tuple[int, int]], list[Tensor]]:
    """Starts and stops of chunks, and for means each slot's level (G N) in each chunk and after the last.

    Weights are taken relative to a level that the chunk's first query sees, or else the first write reaches, so that
    no later one is felt, not even by rounding.  Where a control rises too far above it the chunk is quartered.
    """
    length = control.size(1)
    pending = [(start, min(start + CHUNK, length)) for start in range(0, length, CHUNK)][::-1]
    if not means:
        return pending[::-1], []
    bounds, levels = [], []
    while pending:
        start, stop = pending.pop()
        inside = control[:, start:stop]
        most, first = inside.amax(1), inside[:, 0]
        if bool((first == -math.inf).any()):
            later = inside.gather(1, (inside != -math.inf).int().argmax(1, keepdim=True)).squeeze(1)
            first = torch.where(level < LOWEST / 2, later, first)
        base = torch.maximum(level, first)
        if stop - start > 1 and bool((most - base > MOST_RISE).any()):
            step = max(1, (stop - start) // 4)
            pending += [(s, min(s + step, stop)) for s in range(start, stop, step)][::-1]
            continue
        bounds.append((start, stop))
        levels.append(base)
        level = torch.maximum(base, most)
    return bounds, [*levels, level]


class _Slots(NamedTuple):
    """What the queries of a chunk (G T) see: alpha G T N, inverse totals or None for sums, and how they attend."""

    alpha: Tensor
    inverse: Tensor | None
    total: Tensor
    scores: Tensor
    logits: Tensor
    shares: Tensor


def _slots(q: Tensor, k: Tensor, alpha: Tensor, key_memory: Tensor, total: Tensor, means: bool, empty: bool) -> _Slots:
    """scores: masked products of queries and keys; logits G T N; shares: softmax, over the totals for means."""
    totals = (alpha if means else (alpha != 0).to(alpha.dtype)).cumsum(1).add_(total.unsqueeze(1))
    scores = torch.bmm(q, k.transpose(1, 2)).tril_()
    logits = torch.bmm(scores, alpha).baddbmm_(q, key_memory.transpose(1, 2)).mul_(q.size(2) ** -0.5)
    blank = totals == 0
    inverse = None
    if means:
        inverse = totals.masked_fill(blank, math.inf).reciprocal_()
        logits *= inverse
    if not empty:
        logits.masked_fill_(blank, LOWEST)
    return _Slots(alpha, inverse, totals, scores, logits, logits.softmax(2))


class _CausalBoundedMemory(torch.autograd.Function):
    """G is B and H merged.  For means the memories are relative to exp(level), which is constant and cancels."""

    @staticmethod
    def forward(ctx, query, key, value, control, key_memory, value_memory, total, level, means, empty):
        bounds, levels = _bounds(control, level, means)
        recorded = any(ctx.needs_input_grad)
        key_memory, value_memory, total = key_memory.clone(), value_memory.clone(), total.clone()
        output = torch.empty_like(value)
        factors = [(old - new).exp().to(query.dtype) for old, new in zip([level, *levels], levels, strict=False)]
        level = levels[-1].clone() if means else level.clone()
        starts = []
        for chunk, (start, stop) in enumerate(bounds):
            q, k, v = (x[:, start:stop] for x in (query, key, value))
            if means:
                key_memory *= factors[chunk].unsqueeze(2)
                value_memory *= factors[chunk].unsqueeze(2)
                total = total * factors[chunk]
            if recorded:
                starts += [key_memory.clone(), value_memory.clone(), total]
            alpha = _alpha(control[:, start:stop], levels[chunk] if means else None, q.dtype)
            slots = _slots(q, k, alpha, key_memory, total, means, empty)
            shares = slots.shares.mul_(slots.inverse) if means else slots.shares
            mix = torch.bmm(shares, alpha.transpose(1, 2)).tril_()
            output[:, start:stop] = torch.bmm(mix, v).baddbmm_(shares, value_memory)
            key_memory.baddbmm_(alpha.transpose(1, 2), k)
            value_memory.baddbmm_(alpha.transpose(1, 2), v)
            total = slots.total[:, -1].clone()
        if means:
            key_memory *= factors[-1].unsqueeze(2)
            value_memory *= factors[-1].unsqueeze(2)
            total = total * factors[-1]
        ctx.bounds, ctx.means, ctx.empty = bounds, means, empty
        if recorded:
            ctx.save_for_backward(query, key, value, control, *levels, *factors, *starts)
        ctx.mark_non_differentiable(level)
        return output, key_memory, value_memory, total, level

    @staticmethod
    @first_derivatives_only
    def backward(ctx, d_output, d_key_memory, d_value_memory, d_total, _):
        query, key, value, control, *rest = ctx.saved_tensors
        count, means = len(ctx.bounds), ctx.means
        levels, factors = (rest[: count + 1], rest[count + 1 : 2 * count + 2]) if means else ([], [])
        starts = rest[len(rest) - 3 * count :]
        d_query, d_key, d_value = (torch.empty_like(x) for x in (query, key, value))
        d_control = torch.empty_like(control) if ctx.needs_input_grad[3] else None
        d_key_memory, d_value_memory, d_total = d_key_memory.clone(), d_value_memory.clone(), d_total.clone()
        if means:
            d_key_memory *= factors[-1].unsqueeze(2)
            d_value_memory *= factors[-1].unsqueeze(2)
            d_total *= factors[-1]
        for chunk in reversed(range(count)):
            now = slice(*ctx.bounds[chunk])
            q, k, v, d_out = query[:, now], key[:, now], value[:, now], d_output[:, now]
            key_memory, value_memory, total = starts[3 * chunk : 3 * chunk + 3]
            alpha = _alpha(control[:, now], levels[chunk] if means else None, q.dtype)
            slots = _slots(q, k, alpha, key_memory, total, means, ctx.empty)
            shares = slots.shares * slots.inverse if means else slots.shares
            mix = torch.bmm(shares, alpha.transpose(1, 2)).tril_()
            d_mix = torch.bmm(d_out, v.transpose(1, 2)).tril_()
            d_shares = torch.bmm(d_mix, alpha).baddbmm_(d_out, value_memory.transpose(1, 2))
            if means:
                d_shares *= slots.inverse
            pulled = d_shares.mul_(slots.shares)
            d_logits = torch.addcmul(pulled, slots.shares, pulled.sum(2, keepdim=True), value=-1)
            d_keyed = d_logits * q.size(2) ** -0.5
            if means:
                d_keyed *= slots.inverse
            d_scores = torch.bmm(d_keyed, alpha.transpose(1, 2)).tril_()
            d_query[:, now] = torch.bmm(d_scores, k).baddbmm_(d_keyed, key_memory)
            d_key[:, now] = torch.bmm(d_scores.transpose(1, 2), q).baddbmm_(alpha, d_key_memory)
            d_value[:, now] = torch.bmm(mix.transpose(1, 2), d_out).baddbmm_(alpha, d_value_memory)
            if d_control is not None:
                d_alpha = torch.bmm(v, d_value_memory.transpose(1, 2))
                d_alpha.baddbmm_(d_mix.transpose(1, 2), shares).baddbmm_(slots.scores.transpose(1, 2), d_keyed)
                d_alpha.baddbmm_(k, d_key_memory.transpose(1, 2))
            if means:
                d_totals = pulled.addcmul_(d_logits, slots.logits).mul_(slots.inverse).neg_()
                d_totals[:, -1] += d_total
                # From the last step back: what a weight adds to its own total and to all later ones.
                after = torch.ones(q.size(1), q.size(1), dtype=q.dtype, device=q.device).triu_()
                d_totals = after @ d_totals
                d_total = d_totals[:, 0].clone()
                if d_control is not None:
                    d_alpha = d_alpha.add_(d_totals).mul_(alpha)
            if d_control is not None:
                d_control[:, now] = d_alpha
            d_value_memory.baddbmm_(shares.transpose(1, 2), d_out)
            d_key_memory.baddbmm_(d_keyed.transpose(1, 2), q)
            if means:
                d_value_memory *= factors[chunk].unsqueeze(2)
                d_key_memory *= factors[chunk].unsqueeze(2)
                d_total = d_total * factors[chunk]
        return d_query, d_key, d_value, d_control, d_key_memory, d_value_memory, d_total, None, None, None


def _alpha(control: Tensor, level: Tensor | None, dtype: torch.dtype) -> Tensor:
    return control.to(dtype) if level is None else (control - level.unsqueeze(1)).exp().to(dtype)
