"""The family against the reference numbers: readings, last memories and gradients, some longer than a chunk."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from seqstruct.ops.delta import gated_delta_rule, gated_slots, log_linear, naive

EXACT = {"rtol": 0, "atol": 1e-9}
NUMBERED = pytest.mark.parametrize("number", [0, 1])
FORMS = pytest.mark.parametrize("form", ["recurrence", "chunks"])


def load(golden, name: str) -> dict[str, Tensor]:
    """Arrays of a case with heads before tokens; those that have a gradient require one."""
    case = {}
    with np.load(golden("delta", f"{name}.npz")) as file:
        for key in file.files:
            tensor = torch.from_numpy(file[key])
            own = key.startswith(("final", "initial", "grad_initial", "num_"))
            case[key] = tensor if own else tensor.transpose(1, 2)
    for key in [key.removeprefix("grad_") for key in case if key.startswith("grad_")]:
        case[key].requires_grad_()
    return case


def check(case: dict[str, Tensor], output: Tensor, *finals: Tensor) -> None:
    torch.testing.assert_close(output, case["out"], **EXACT)
    for number, final in enumerate(finals):
        torch.testing.assert_close(final, case[f"final_{number}"], **EXACT)
    names = [name.removeprefix("grad_") for name in case if name.startswith("grad_")]
    gradients = torch.autograd.grad((output * case["w"]).sum(), [case[name] for name in names])
    for name, gradient in zip(names, gradients, strict=True):
        torch.testing.assert_close(gradient, case[f"grad_{name}"], **EXACT)


RULES = ["delta", "delta_negative", "delta_initial", "gated_delta", "gated_delta_initial", "delta_product", "kda"]


@FORMS
@NUMBERED
@pytest.mark.parametrize("name", [*RULES, "gla", "ssd", "retention"])
def test_memories_that_decay_and_are_corrected(name: str, number: int, form: str, golden) -> None:
    case = load(golden, f"{name}_{number}")
    rule = naive.gated_delta_rule if form == "recurrence" else gated_delta_rule
    scale = 1.0 if name == "delta_product" else case["q"].size(-1) ** -0.5
    log_decay = case.get("g", case.get("gk"))
    if name == "retention":
        fixed = torch.log1p(-(2.0 ** -(5 + torch.arange(case["q"].size(1), dtype=torch.float64))))
        log_decay = fixed[None, :, None].expand(case["q"].shape[:3])
    steps = int(case.get("num_householder", 1))
    beta, memory = case.get("beta"), case.get("initial")
    output, last = rule(scale * case["q"], case["k"], case["v"], log_decay, beta, memory, steps)
    check(case, output, *[last] if "final_0" in case else [])


@FORMS
@NUMBERED
def test_gated_slots(number: int, form: str, golden) -> None:
    case = load(golden, f"gsa_{number}")
    slots = naive.gated_slots if form == "recurrence" else gated_slots
    sizes = [case["k"].size(-1), case["v"].size(-1)]
    memory = torch.zeros(*case["k"].shape[:2], case["s"].size(-1), sum(sizes), dtype=torch.float64)
    scale = sizes[0] ** -0.5
    output, last = slots(scale * case["q"], case["k"], case["v"], case["s"], case["g"], memory)
    keys, values = last.split(sizes, -1)
    check(case, output, keys.mT, values)


@FORMS
def test_log_linear_attention(form: str, golden) -> None:
    case = load(golden, "log_linear_0")
    inputs = [case[name] for name in ("q", "level_scales", "k", "v", "g")]
    check(case, (naive.log_linear if form == "recurrence" else log_linear)(*inputs))
