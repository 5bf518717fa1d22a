"""The delta rule's family in `seqstruct bench attention`, and what others have of it where it can be imported.

Keys and queries of the delta rules are made unit vectors in what is timed, decays and strengths of numbers for each
token.  Beside them stands Hugging Face's gated delta rule in chunks, which is PyTorch alone, and on a CUDA device what
flash-linear-attention has.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.benchmarks.timing import Place, draw, peer
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
HUGGING_FACE = "transformers.models.qwen3_next.modeling_qwen3_next"
Case = tuple[Callable[[], Tensor], list[Tensor]]


def delta_cases(leaves: list[Tensor], place: Place) -> dict[str, Case]:
    """By name: what makes the outputs, and the leaves that gradients are taken for; leaves: query, key and value,
    B H T D.
    """
    query, key, value = leaves
    batch, heads, length, dim = query.shape

    def leaf(seed: int, *shape: int) -> Tensor:
        return draw(seed, batch, heads, *shape).detach().to(place.device).requires_grad_()

    gate, strength, channels = leaf(11, length), leaf(12, length), leaf(13, length, dim)
    slots, scales = leaf(14, length, SLOTS), leaf(15, length, LEVELS)
    keys, values, strengths = leaf(16, 2 * length, dim), leaf(17, 2 * length, dim), leaf(18, 2 * length)
    fixed = torch.log1p(-(2.0 ** (-5 - torch.arange(heads, device=place.device))))[:, None].expand(batch, -1, length)

    def delta() -> Tensor:
        return gated_delta_rule(unit_norm(query), unit_norm(key), value, None, strength.sigmoid())[0]

    def gated_delta() -> Tensor:
        return gated_delta_rule(unit_norm(query), unit_norm(key), value, F.logsigmoid(gate), strength.sigmoid())[0]

    def delta_product() -> Tensor:
        return gated_delta_rule(unit_norm(query), unit_norm(keys), values, None, strengths.sigmoid(), steps=2)[0]

    def kda() -> Tensor:
        return gated_delta_rule(unit_norm(query), unit_norm(key), value, F.logsigmoid(channels), strength.sigmoid())[0]

    def gla() -> Tensor:
        return gated_delta_rule(query, key, value, F.logsigmoid(channels) / 16)[0]

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

    return {
        "delta": (delta, [*leaves, strength]),
        "gated_delta": (gated_delta, [*leaves, strength, gate]),
        **_peers(leaves, gate, strength, channels, place),
        "delta_product, 2 steps": (delta_product, [query, keys, values, strengths]),
        "kda": (kda, [*leaves, strength, channels]),
        "gla": (gla, [*leaves, channels]),
        "retention": (lambda: gated_delta_rule(query, key, value, fixed)[0], leaves),
        "ssd": (ssd, [*leaves, gate]),
        "mlstm": (mlstm, [*leaves, gate, strength]),
        f"gsa, {SLOTS} slots": (gsa, [*leaves, slots]),
        f"log_linear, {LEVELS} levels": (levels, [*leaves, gate, scales]),
    }


def _peers(leaves: list[Tensor], gate: Tensor, strength: Tensor, channels: Tensor, place: Place) -> dict[str, Case]:
    """Tokens before heads, as both have them; those of flash-linear-attention take half precision alone."""
    found: dict[str, Case] = {}

    def turned(*tensors: Tensor) -> list[Tensor]:
        return [x.transpose(1, 2) for x in tensors]

    theirs = peer(HUGGING_FACE)
    if theirs is not None:

        def hugging_face() -> Tensor:
            inputs = turned(*leaves, F.logsigmoid(gate), strength.sigmoid())
            return theirs.torch_chunk_gated_delta_rule(*inputs, use_qk_l2norm_in_kernel=True)[0].transpose(1, 2)

        found["Hugging Face, gated_delta"] = hugging_face, [*leaves, strength, gate]
    fla = peer("fla.ops") if place.device.type == "cuda" else None
    if fla is None:
        return found

    def half(function: Callable, *more: Callable[[], Tensor], **options: bool) -> Callable[[], Tensor]:
        def run() -> Tensor:
            inputs = [*turned(*leaves), *turned(*(x() for x in more))]
            output = function(*(x.bfloat16() for x in inputs), **options)[0]
            return output.transpose(1, 2).to(leaves[0].dtype)

        return run

    unit, beta, decay = {"use_qk_l2norm_in_kernel": True}, strength.sigmoid, lambda: F.logsigmoid(gate)
    name = "flash-linear-attention, {}, bfloat16".format
    return {
        **found,
        name("delta"): (half(fla.chunk_delta_rule, beta, **unit), [*leaves, strength]),
        name("gated_delta"): (half(fla.chunk_gated_delta_rule, decay, beta, **unit), [*leaves, strength, gate]),
        name("gla"): (half(fla.chunk_gla, lambda: F.logsigmoid(channels) / 16), [*leaves, channels]),
    }
