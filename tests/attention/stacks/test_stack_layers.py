"""Stack attention layers against values and gradients of the released code."""

from __future__ import annotations

import copy
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


LARGE = {torch.float32: 89.0, torch.float16: 12.0, torch.float64: 1000.0}  # exp of it leaves the type's range


def at_rate(dtype: torch.dtype, large: float, generator: torch.Generator):
    """A layer in a type and in float64, and an input B T C whose token 2 of row 0 has W_v x = large in front."""
    attention = get_attention("nondeterministic_stack")(
        make_config("nondeterministic_stack", {"states": 2, "symbols": 2, "size": 3}), Shape.of(Site.DECODER_SELF, 6)
    )
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 4)
        attention.pushed_layer.weight[0] = torch.eye(6)[0]
        attention.transition_layer.weight[:, 0] = 0.0  # a large input chooses no transition
    x = torch.randn(2, 7, 6, generator=generator)
    x[0, 2, 0] = large
    exact = copy.deepcopy(attention).double()
    exact.load_state_dict(attention.to(dtype).state_dict())
    return attention, exact, x.to(dtype)


@pytest.mark.parametrize("dtype", list(LARGE), ids=str)
def test_a_large_input_is_pushed_as_in_float64(dtype: torch.dtype, generator: torch.Generator) -> None:
    """What the type cannot show is its largest number, at its own position; others are as in float64."""
    attention, exact, x = at_rate(dtype, LARGE[dtype], generator)
    expected = exact(*[x.double()] * 3)[0].output
    largest = torch.finfo(dtype).max
    assert expected[0].abs().max() > (largest / 100 if dtype != torch.float64 else 1e200)
    expected = expected.clamp(-largest, largest)
    x.requires_grad_()
    outputs = attention(x, x, x)[0].output
    state, steps = attention.initial_state(2), []
    for t in range(7):
        state = attention.write(state, x[:, t : t + 1], x[:, t : t + 1])
        steps.append(attention.read(state, x[:, t : t + 1]).output)
    for output in (outputs, torch.cat(steps, 1)):
        assert output.dtype == dtype
        torch.testing.assert_close(output.double(), expected, rtol=20 * torch.finfo(dtype).eps, atol=1e-3)
        grad = torch.autograd.grad((output * torch.finfo(dtype).tiny).sum(), x, retain_graph=True)[0]
        assert grad.isfinite().all()


def test_a_padded_input_is_not_pushed(generator: torch.Generator) -> None:
    """Whatever W_v x is there: neither values nor gradients know it, in one pass and step by step."""
    attention, _, x = at_rate(torch.float32, 1000.0, generator)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[0, 2] = True
    results = []
    for large in (1000.0, -1.0):
        inputs = x.clone()
        inputs[0, 2, 0] = large
        inputs.requires_grad_()
        whole = attention(inputs, inputs, inputs, padding)[0].output
        resumed = attention(inputs, inputs, inputs, padding, attention.initial_state(2))[0].output
        results.append([whole, resumed, *(torch.autograd.grad(y.sum(), inputs)[0] for y in (whole, resumed))])
    for padded, plain in zip(*results, strict=True):
        assert torch.equal(padded, plain)


def test_actions_are_computed_where_they_are_asked_for(generator: torch.Generator) -> None:
    attention = get_attention("nondeterministic_stack")(
        make_config("nondeterministic_stack", {"states": 2, "symbols": 2, "size": 3}), Shape.of(Site.DECODER_SELF, 6)
    )
    x = torch.randn(2, 5, 6, generator=generator)
    for state in (None, attention.initial_state(2)):
        assert not attention(x, x, x, state=state)[0].extra
        actions = attention(x, x, x, state=state, need_weights=True)[0].extra["actions"]
        torch.testing.assert_close(actions.sum(2), torch.ones(2, 5))
