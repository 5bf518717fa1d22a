"""Causal attention in training, forward and backward, in units of PyTorch's fused softmax attention.

Batch 8, 8 heads of size 64: from queries, keys and values to outputs, without the projections around them; random
features are made in it, ABC's control is given.  Keys and queries of the delta rules are made unit vectors in what is
timed, decays and strengths of numbers for each token.  Beside them stands Hugging Face's gated delta rule in chunks,
which is PyTorch alone, and on a CUDA device what flash-linear-attention has.
All forms here keep O(T) numbers for the backward pass, `kept MB`, softmax too, which takes O(T^2) time; with dropout
PyTorch has no fused kernel on CPUs, and keeps O(T^2).
Chunked forms make many short-lived tensors: with glibc, MALLOC_MMAP_THRESHOLD_=1073741824 and
MALLOC_TRIM_THRESHOLD_=2147483648 keep it from handing their memory back to the system each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.benchmarks import peers
from seqstruct.benchmarks.timing import Contestant, Place, draw, heading, measure
from seqstruct.command import text_table
from seqstruct.ops.delta import (
    empty_exponential,
    exponential_gates,
    gated_delta_rule,
    gated_slots,
    log_linear,
)
from seqstruct.ops.dropout import kernel_drops
from seqstruct.ops.memory import (
    EluMap,
    GaussianMap,
    causal_bounded_memory,
    causal_linear_attention,
    empty_bounded_memory,
    empty_memory,
    schedule,
    unit_norm,
)
from seqstruct.ops.softmax import softmax_attention
from seqstruct.plots.curves import log_panels
from seqstruct.plots.figures import check_name, save

BATCH, HEADS, DIM, FREQUENCIES, SLOTS, LEVELS = 8, 8, 64, 64, 32, 12
DROPOUT, WITH_WEIGHTS = 0.1, 2048  # length up to which dropout is timed where PyTorch keeps all weights
UNIT = "softmax, fused"
Case = tuple[Callable[[], Tensor], list[Tensor]]


def run(lengths: Sequence[int], repeats: int, plot: str | None = None, device: str = "cpu") -> str:
    """The table, and the curves as a picture under the name `plot`.

    Raises ValueError on a device that is not to be had, or a picture of another kind.
    """
    place = Place.of(device, "float32")
    if plot:
        check_name(plot)
    rows, times, kept = [], {}, {}
    for length in lengths:
        timings = measure({name: _contestant(case, place) for name, case in cases(length, place).items()}, repeats,
                          place=place)
        for name, timing in timings.items():
            unit = timings[UNIT]
            ratios = f"{timing.forward / unit.forward:.2f}", f"{timing.both / unit.both:.2f}"
            cells = f"{timing.forward:.1f}", f"{timing.both:.1f}", *ratios, f"{timing.kept:.0f}"
            rows.append([name, str(length), *cells])
            times.setdefault(name, {})[length] = timing.both
            kept.setdefault(name, {})[length] = timing.kept
    if plot:
        panels = [("forward and backward, ms", times), ("kept for the backward pass, MB", kept)]
        save(log_panels(panels, f"Causal attention, batch {BATCH}, {HEADS} heads of {DIM}"), plot)
    header = ["attention", "length", "forward ms", "forward+backward ms", "of softmax: forward", "both", "kept MB"]
    others = ["transformers", *(["flash-linear-attention"] if place.device.type == "cuda" else [])]
    title = f"Causal attention, batch {BATCH}, {HEADS} heads of {DIM}"
    return heading(title, place, repeats, *others) + text_table(header, rows)


def cases(length: int, place: Place) -> dict[str, Case]:
    """By name: what makes the outputs, and the leaves that gradients are taken for."""
    leaf = partial(_leaf, place)
    leaves = [leaf(seed, length, DIM) for seed in (1, 2, 3)]
    query, key, value = leaves
    control, gate = leaf(4, length, SLOTS), leaf(6, length)
    projection = draw(5, HEADS, FREQUENCIES, DIM, device=place.device)

    dropped = {f"softmax, dropout {DROPOUT}": lambda: softmax_attention(query, key, value, None, True, DROPOUT)}
    if length > WITH_WEIGHTS and not kernel_drops(DROPOUT, query):
        dropped = {}
    elif length <= WITH_WEIGHTS:
        dropped[f"softmax, dropout {DROPOUT}, PyTorch"] = lambda: F.scaled_dot_product_attention(
            query, key, value, dropout_p=DROPOUT, is_causal=True
        )

    def linear() -> Tensor:
        state = empty_memory(BATCH, HEADS, DIM, DIM, query)
        return causal_linear_attention(state, query, key, value, None, EluMap())[0]

    def random_features(gated: bool) -> Tensor:
        state = empty_memory(BATCH, HEADS, 2 * FREQUENCIES, DIM, query)
        plan = schedule(state.level, None, F.logsigmoid(gate)) if gated else None
        weight = torch.sigmoid(-gate) if gated else None
        features = GaussianMap(projection, True, projection[:, 0])
        return causal_linear_attention(state, query, key, value, plan, features, weight)[0]

    def bounded() -> Tensor:
        state = empty_bounded_memory(BATCH, HEADS, SLOTS, DIM, DIM, query)
        return causal_bounded_memory(state, query, key, value, control, True)[0]

    return {
        UNIT: (lambda: F.scaled_dot_product_attention(query, key, value, is_causal=True), leaves),
        **{name: (function, leaves) for name, function in dropped.items()},
        "linear": (linear, leaves),
        f"rfa, {FREQUENCIES} frequencies": (lambda: random_features(False), [*leaves, projection]),
        f"rfa gated, {FREQUENCIES} frequencies": (lambda: random_features(True), [*leaves, projection, gate]),
        f"abc_mlp, {SLOTS} slots": (bounded, [*leaves, control]),
        **delta_cases(leaves, place),
    }


def delta_cases(leaves: list[Tensor], place: Place) -> dict[str, Case]:
    """The delta rule's family, and what others have of it; leaves: query, key and value, B H T D."""
    query, key, value = leaves
    length, leaf = query.size(2), partial(_leaf, place)
    gate, strength, channels = leaf(11, length), leaf(12, length), leaf(13, length, DIM)
    slots, scales = leaf(14, length, SLOTS), leaf(15, length, LEVELS)
    keys, values, strengths = leaf(16, 2 * length, DIM), leaf(17, 2 * length, DIM), leaf(18, 2 * length)
    fixed = torch.log1p(-(2.0 ** (-5 - torch.arange(HEADS, device=place.device))))[:, None].expand(BATCH, -1, length)

    def of_units(decay: Callable[[], Tensor | None]) -> Callable[[], Tensor]:
        return lambda: gated_delta_rule(unit_norm(query), unit_norm(key), value, decay(), strength.sigmoid())[0]

    def delta_product() -> Tensor:
        return gated_delta_rule(unit_norm(query), unit_norm(keys), values, None, strengths.sigmoid(), steps=2)[0]

    def ssd() -> Tensor:
        size = F.softplus(gate)
        return gated_delta_rule(query, key * size.unsqueeze(-1), value, -size)[0]

    def mlstm() -> Tensor:
        state = empty_exponential(BATCH, HEADS, DIM, DIM, query)
        return exponential_gates(state, query, key, value, strength, F.logsigmoid(gate))[0]

    def gsa() -> Tensor:
        decay, memory = F.logsigmoid(slots) / 8, query.new_zeros(BATCH, HEADS, SLOTS, 2 * DIM)
        return gated_slots(query, key, value, -torch.expm1(decay), decay, memory)[0]

    def levels() -> Tensor:
        size = F.softplus(gate)
        return log_linear(query, F.softplus(scales), key * size.unsqueeze(-1), value, -size)

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
    }
    return {f"flash-linear-attention, {name}, bfloat16": case for name, case in cases.items()}


def _leaf(place: Place, seed: int, *shape: int) -> Tensor:
    return draw(seed, BATCH, HEADS, *shape, device=place.device)


def _contestant(case: Case, place: Place) -> Contestant:
    outputs, leaves = case
    pull = draw(7, *leaves[0].shape, device=place.device).detach()
    return Contestant(outputs, lambda output: torch.autograd.grad(output, leaves, pull))
