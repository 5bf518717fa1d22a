"""Initial parameters of Stack Attention, appendix D.2."""

from __future__ import annotations

import math

import pytest
import torch

from seqstruct.bridge.initialization import initialize_uniform
from tests.models.building import cfl_dictionary, language_model


@pytest.mark.parametrize("kind", ["Tf", "Tf_Sup", "Tf_Nd"])
def test_bounds_of_every_parameter(kind: str) -> None:
    model = language_model(kind, cfl_dictionary("dyck"), 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    initialize_uniform(model, 0.1)
    stack = "decoder.layers.2." if kind != "Tf" else "none"
    for name, parameter in model.named_parameters():
        largest = parameter.abs().max().item()
        if "layer_norm" in name:
            assert torch.equal(parameter, torch.full_like(parameter, float(name.endswith("weight"))))
        elif name.startswith("decoder.output_projection") or (name.startswith(stack) and "bottom" not in name):
            if name.endswith("bias"):
                assert largest == 0.0
            else:
                gain = math.sqrt(2.0) if name == f"{stack}fc1.weight" else 1.0
                bound = gain * math.sqrt(6.0 / sum(parameter.shape))
                assert 0.85 * bound < largest <= bound, name
        else:
            assert 0.05 < largest <= 0.1, name


def test_a_bound_is_positive() -> None:
    with pytest.raises(ValueError, match="positive, not 0"):
        initialize_uniform(torch.nn.Linear(2, 2), 0)
