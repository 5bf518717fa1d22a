"""An LSTM with a nondeterministic stack that is pushed vectors beyond the range of its numbers."""

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
