"""Gated slots (Zhang et al. 2024, sec. 3.2): a memory of keys and values in slots that decay, read by a softmax.

Two passes of decaying linear attention, a chunk at a time: from the queries to the slots' scores, where the slots are
what comes out, and from their softmax to the values, where the slots are what goes in.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.compiled import usable
from seqstruct.ops.delta.channels import sums
from seqstruct.ops.delta.chunks import channel_decays, chunk_tokens, decayed_products, in_chunks, pass_on
from seqstruct.ops.delta.compiled import compiled_rule, compiled_scores
from seqstruct.ops.opaque import opaque

LOWEST = -1e30  # the score of a slot that is left out


@opaque(lambda query, key, value, *others: tuple(x.new_empty(x.shape) for x in (value, others[2])))
def gated_slots(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    control: Tensor,
    log_decay: Tensor | None,
    memory: Tensor,
    blank: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Readings B H T V after each token, and the last memory B H N K+V, keys and values side by side.

    query, key: B H T K; value: B H T V; control: B H T N, how much of a token enters each slot; log_decay: B H T N,
    logarithms, 0 at most, or None for none.  memory: B H N K+V; slots that nothing was written to take part, with key
    and value 0, but for those that are blank, B H T N bool, at that step.
        memory <- exp(g_t) memory + s_t [k_t, v_t]^T,   o_t = softmax_n(memory_K q_t)^T memory_V
    A token with log_decay 0 and control 0 changes nothing.
    O(T (CHUNK (K + V + N) + N (K + V))) time; a kernel on CPUs takes O(T N (K + V)), and has first derivatives only.
    """
    length = query.size(2)
    if not length:
        return value[:, :, :0], memory
    sizes = [key.size(-1), value.size(-1)]
    if usable(query, key, value, control, log_decay, memory):
        keys, values = memory.split(sizes, -1)
        scores, keys = compiled_scores(query, control, key, log_decay, keys)
        if blank is not None:
            scores = scores.masked_fill(blank, LOWEST)
        readings, values = compiled_rule(scores.softmax(-1), control, value, log_decay, None, values, 1)
        return readings, torch.cat([keys, values], -1)
    rows = chunk_tokens(length)
    query, key, value, control = (in_chunks(x, rows) for x in (query, key, value, control))
    both = torch.cat([key, value], -1)
    if log_decay is None:
        before, memory, _ = pass_on(memory, control, both)
        keys, values = before.split(sizes, -1)
        scores = decayed_products(query, key, None) @ control + query @ keys.mT
    else:
        decays = channel_decays(in_chunks(log_decay, rows))
        before, memory, _ = pass_on(memory, control * decays.end, both, None, decays.whole)
        keys, values = before.split(sizes, -1)
        scores = sums(query @ key.mT, control, decays.gates, decays.factors) + decays.begin * (query @ keys.mT)
    if blank is not None:
        scores = scores.masked_fill(in_chunks(blank, rows), LOWEST)
    weights = scores.softmax(-1)
    if log_decay is None:
        readings = decayed_products(weights, control, None) @ value + weights @ values
    else:
        readings = decayed_products(weights, control, decays) @ value + (weights * decays.begin) @ values
    return readings.flatten(2, 3)[:, :, :length], memory
