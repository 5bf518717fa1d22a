"""The delta rule's family in `seqstruct bench attention`, and what others have of it where it can be imported.

Keys and queries of the delta rules are made unit vectors in what is timed, decays and strengths of numbers for each
token.  Beside them stands Hugging Face's gated delta rule in chunks, which is PyTorch alone, and on a CUDA device what
flash-linear-attention has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.benchmarks import peers
from seqstruct.benchmarks.timing import Place, draw
from seqstruct.ops.delta import (
    Buckets,
    empty_exponential,
    exponential_gates,
    gated_delta_rule,
    gated_slots,
    log_linear,
)
from seqstruct.ops.memory import unit_norm

SLOTS, LEVELS = 32, 12
Case = tuple[Callable[[], Tensor], list[Tensor]]


def delta_cases(leaves: list[Tensor], place: Place) -> dict[str, Case]:
    """By name: what makes the outputs, and the leaves that gradients are taken for; leaves: query, key and value,
    B H T D.
    """
    query, key, value = leaves
    batch, heads, length, dim = query.shape

    def leaf(seed: int, *shape: int) -> Tensor:
        return draw(seed, batch, heads, *shape, device=place.device)

    gate, strength, channels = leaf(11, length), leaf(12, length), leaf(13, length, dim)
    slots, scales = leaf(14, length, SLOTS), leaf(15, length, LEVELS)
    keys, values, strengths = leaf(16, 2 * length, dim), leaf(17, 2 * length, dim), leaf(18, 2 * length)
    fixed = torch.log1p(-(2.0 ** (-5 - torch.arange(heads, device=place.device))))[:, None].expand(batch, -1, length)

    def of_units(decay: Callable[[], Tensor | None]) -> Callable[[], Tensor]:
        return lambda: gated_delta_rule(unit_norm(query), unit_norm(key), value, decay(), strength.sigmoid())[0]

    def delta_product() -> Tensor:
        return gated_delta_rule(unit_norm(query), unit_norm(keys), values, None, strengths.sigmoid(), steps=2)[0]

    def ssd() -> Tensor:
        size = F.softplus(gate)
        return gated_delta_rule(query, key * size.unsqueeze(-1), value, -size)[0]

    def mlstm() -> Tensor:
        state = empty_exponential(batch, heads, dim, dim, query)
        return exponential_gates(state, query, key, value, strength, F.logsigmoid(gate))[0]

    def gsa() -> Tensor:
        decay, memory = F.logsigmoid(slots) / 8, query.new_zeros(batch, heads, SLOTS, 2 * dim)
        return gated_slots(query, key, value, -torch.expm1(decay), decay, memory)[0]

    def levels() -> Tensor:
        size = F.softplus(gate)
        count = torch.zeros(batch, dtype=torch.long, device=place.device)
        state = Buckets(query.new_zeros(batch, heads, LEVELS, dim, dim), count)
        real = torch.ones(batch, 1, length, dtype=torch.long, device=place.device)
        return log_linear(state, query, F.softplus(scales), key * size.unsqueeze(-1), value, -size, real)[0]

    found = {
        "delta": (of_units(lambda: None), [*leaves, strength]),
        "gated_delta": (of_units(lambda: F.logsigmoid(gate)), [*leaves, strength, gate]),
        "delta_product, 2 steps": (delta_product, [query, keys, values, strengths]),
        "kda": (of_units(lambda: F.logsigmoid(channels)), [*leaves, strength, channels]),
        "gla": (lambda: gated_delta_rule(query, key, value, F.logsigmoid(channels) / 16)[0], [*leaves, channels]),
        "retention": (lambda: gated_delta_rule(query, key, value, fixed)[0], leaves),
        "ssd": (ssd, [*leaves, gate]),
        "mlstm": (mlstm, [*leaves, gate, strength]),
        f"gsa, {SLOTS} slots": (gsa, [*leaves, slots]),
        f"log_linear, {LEVELS} levels": (levels, [*leaves, gate, scales]),
    }
    if theirs := peers.peer("transformers"):

        def hugging_face() -> Tensor:
            inputs = (x.transpose(1, 2) for x in (*leaves, F.logsigmoid(gate), strength.sigmoid()))
            return theirs.torch_chunk_gated_delta_rule(*inputs, use_qk_l2norm_in_kernel=True)[0].transpose(1, 2)

        found["Hugging Face, gated_delta"] = hugging_face, [*leaves, strength, gate]
    if place.device.type == "cuda" and (fla := peers.peer("flash-linear-attention")):
        found |= flash_cases(fla, leaves, gate, strength, channels, slots)
    return found


def flash_cases(
    fla: Any, leaves: list[Tensor], gate: Tensor, strength: Tensor, channels: Tensor, slots: Tensor
) -> dict[str, Case]:
    """Those of flash-linear-attention, which have tokens before heads and take half precision alone."""
    query, key, value = leaves

    def half(function: Callable, *inputs: Callable[[], Tensor] | Tensor, **options: bool) -> Callable[[], Tensor]:
        def run() -> Tensor:
            given = (x() if callable(x) else x for x in inputs)
            output = function(*(x.transpose(1, 2).bfloat16() for x in given), **options)[0]
            return output.transpose(1, 2).to(query.dtype)

        return run

    def positive(x: Tensor) -> Callable[[], Tensor]:
        return lambda: F.elu(x) + 1

    def decay() -> Tensor:
        return F.logsigmoid(gate)

    def slot_decay() -> Tensor:
        return F.logsigmoid(slots) / 8

    unit, beta, size = {"use_qk_l2norm_in_kernel": True}, strength.sigmoid, partial(F.softplus, gate)
    cases = {
        "linear": (half(fla.chunk_linear_attn, positive(query), positive(key), value), leaves),
        "delta": (half(fla.chunk_delta_rule, *leaves, beta, **unit), [*leaves, strength]),
        "gated_delta": (half(fla.chunk_gated_delta_rule, *leaves, decay, beta, **unit), [*leaves, strength, gate]),
        "kda": (half(fla.chunk_kda, *leaves, lambda: F.logsigmoid(channels), beta, **unit),
                [*leaves, strength, channels]),
        "gla": (half(fla.chunk_gla, *leaves, lambda: F.logsigmoid(channels) / 16), [*leaves, channels]),
        "retention": (half(fla.chunk_retention, *leaves), leaves),
        "ssd": (half(fla.chunk_simple_gla, query, lambda: key * size().unsqueeze(-1), value, lambda: -size()),
                [*leaves, gate]),
        f"gsa, {SLOTS} slots": (half(fla.chunk_gsa, *leaves, lambda: -torch.expm1(slot_decay()), slot_decay),
                                [*leaves, slots]),
    }  # fmt: skip
    return {f"flash-linear-attention, {name}, bfloat16": case for name, case in cases.items()}
