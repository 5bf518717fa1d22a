"""LSTMs with a stack: vectors beyond the range of their numbers, and the symbols that they read."""

from __future__ import annotations

import copy

import pytest
import torch

from seqstruct.attention import Site, parse_choices
from seqstruct.layers.stack_lstm import StackLSTM


@pytest.mark.parametrize("large", [89.0, 1000.0])
def test_a_large_control_is_pushed_in_float64(large: float, generator: torch.Generator) -> None:
    """A bias of W_v h above the logarithm of float32's largest number: gates are open or shut, nothing is NaN."""
    stack = parse_choices("nondeterministic_stack(states=2, symbols=2, size=2)", 1, Site.DECODER_SELF)[0]
    model = StackLSTM(3, 5, stack)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 2)
        model.stack.pushed_layer.bias[1] = large
    inputs = torch.randint(0, 3, (2, 9), generator=generator)
    expected = copy.deepcopy(model).double()(inputs)[0]
    for need_state in (False, True):
        hiddens = model(inputs, need_state=need_state)[0]
        torch.testing.assert_close(hiddens.double(), expected, rtol=1e-5, atol=1e-5)
        grads = torch.autograd.grad(hiddens.sin().sum(), list(model.parameters()))
        assert all(grad.isfinite().all() for grad in grads)


@pytest.mark.parametrize("stack", [None, "superposition_stack(size=3)", "nondeterministic_stack(size=2)"])
def test_symbols_are_whole_numbers_in_range(stack: str | None) -> None:
    model = StackLSTM(3, 5, stack)
    symbols = torch.tensor([[0, 1, 2, 3, 0]])
    expected = model(symbols)[0]
    for dtype in (torch.int32, torch.uint8):
        assert torch.equal(model(symbols.to(dtype))[0], expected)
    for need_state in (False, True):
        for wrong, found in ((-1, "-1 to 3"), (4, "0 to 4")):
            with pytest.raises(ValueError, match=f"expected symbols from 0 to 3, got {found}"):
                model(torch.tensor([[0, 3, wrong]]), need_state=need_state)
        with pytest.raises(ValueError, match="expected symbols .* of whole numbers, got .* torch.bool"):
            model(symbols > 0, need_state=need_state)
