"""Stack attention layers against values and gradients of the released code."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import numpy as np
import pytest
import torch

from seqstruct.attention import Shape, Site, get_attention, make_config

NAMES = {
    "action_layer": "action_layer.weight",
    "input_to_pushed_vector_layer": "pushed_layer.weight",
    "stack_reading_to_output_layer": "output_layer.weight",
    "bottom_vector_logits": "bottom",
}


def own_name(reference: str, mechanism: str) -> str:
    for part, own in NAMES.items():
        if part in reference:
            return own.replace("action_layer", "transition_layer") if mechanism.startswith("nondet") else own
    raise KeyError(reference)


@pytest.mark.parametrize("case", ["layer_sup_01", "layer_sup_02", "layer_nd_01", "layer_nd_02"])
def test_values_and_gradients(case: str, golden: Callable[[str, str], Path]) -> None:
    arrays = {name: torch.from_numpy(np.asarray(a)) for name, a in np.load(golden("stack", f"{case}.npz")).items()}
    x = arrays["x"].requires_grad_()
    size = next(a.size(0) for name, a in arrays.items() if name.startswith("param.") and "pushed" in name)
    if "sup" in case:
        mechanism, options = "superposition_stack", {"size": size}
    else:
        readings = next(a.size(1) for name, a in arrays.items() if name.startswith("param.") and "reading" in name)
        transitions = next(a.size(0) for name, a in arrays.items() if name.startswith("param.") and "action" in name)
        top = readings // size
        states = transitions // top - 2 * top
        mechanism, options = "nondeterministic_stack", {"states": states, "symbols": top // states, "size": size}
    config = make_config(mechanism, options)
    attention = get_attention(mechanism)(config, Shape.of(Site.DECODER_SELF, x.size(2))).double()
    parameters = {
        own_name(name, mechanism): a for name, a in arrays.items() if name.startswith("param.")
    }
    attention.load_state_dict(parameters)
    output = attention(x, x, x)[0].output
    torch.testing.assert_close(output, arrays["y"], rtol=1e-9, atol=1e-9)
    (output * arrays["weights"]).sum().backward()
    torch.testing.assert_close(x.grad, arrays["grad_x"], rtol=1e-9, atol=1e-9)
    gradients = {own_name(name, mechanism): a for name, a in arrays.items() if name.startswith("grad.")}
    for name, parameter in attention.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mechanism", ["superposition_stack", "nondeterministic_stack"])
def test_the_sigmoid_of_equation_17(mechanism: str, generator: torch.Generator) -> None:
    """With the option, pushed vectors are sigmoid(W_v x): the same as other weights would push without it."""
    shape = Shape.of(Site.DECODER_SELF, 6)
    modules = [
        get_attention(mechanism)(make_config(mechanism, {"size": 3, "sigmoid": sigmoid}), shape).double()
        for sigmoid in (False, True)
    ]
    modules[0].load_state_dict(modules[1].state_dict())
    x = torch.randn(2, 5, 6, generator=generator, dtype=torch.float64)
    plain, squashed = modules
    assert (plain(x, x, x)[0].output - squashed(x, x, x)[0].output).abs().max() > 1e-4
    pushed = squashed.pushed_layer(x).sigmoid()
    plain.pushed_layer.forward = lambda _: pushed if mechanism == "superposition_stack" else pushed.log()
    torch.testing.assert_close(plain(x, x, x)[0].output, squashed(x, x, x)[0].output)
