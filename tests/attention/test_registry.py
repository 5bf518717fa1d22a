"""Registration, and the parts of the protocol that no shipped mechanism uses yet: tied weights and carries."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from seqstruct.attention import ATTENTIONS, Attention, Reading, Site, register_attention, registry
from seqstruct.attention.plan import AttentionPlan, parse_choices
from seqstruct.attention.registry import Register, make_config


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="softmax.*registered already"):
        register_attention("softmax", sites=Site)(type("Other", (Attention,), {}))


def test_a_config_is_a_frozen_dataclass() -> None:
    @dataclass
    class Loose:
        size: int = 1

    with pytest.raises(ValueError, match="frozen dataclass"):
        register_attention("loose", sites=Site)(type("Loosely", (Attention,), {"Config": Loose}))
    assert "loose" not in ATTENTIONS


def test_an_option_without_default_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Needy:
        size: int

    monkeypatch.setattr(registry, "ATTENTIONS", Register())
    register_attention("needy", sites=Site)(type("NeedyAttention", (Attention,), {"Config": Needy}))
    with pytest.raises(ValueError, match="needy needs the option 'size'"):
        make_config("needy", {})
    assert make_config("needy", {"size": 3}).size == 3


def test_tied_weights_and_carries_reach_every_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    from seqstruct.attention import Shape
    from seqstruct.bridge.layers import planned_layers
    from seqstruct.bridge.passes import collect_readings, passing

    monkeypatch.setattr(registry, "ATTENTIONS", Register())

    @register_attention("counting", sites={Site.ENCODER_SELF})
    class Counting(Attention):
        streaming = False
        carries = True

        @classmethod
        def shared(cls, config, shape):
            return torch.nn.Linear(shape.embed_dim, shape.embed_dim, bias=False)

        def parallel(self, inputs, state):
            count = 1 if inputs.carry is None else inputs.carry + 1
            return Reading(self.tied(inputs.query) * count, carry=count), None

    choices = parse_choices("counting", 3, Site.ENCODER_SELF)
    planned = planned_layers(AttentionPlan(choices, (), ()))
    shape = Shape.of(Site.ENCODER_SELF, 4)
    adapters = [next(planned).build(Site.ENCODER_SELF, shape) for _ in range(3)]
    assert adapters[0].mechanism.tied is adapters[2].mechanism.tied
    x = torch.ones(5, 2, 4)
    for _ in range(2):
        with passing(carries={}), collect_readings() as readings:
            for adapter in adapters:
                adapter(x, x, x)
        assert [r.reading.carry for r in readings] == [1, 2, 3]
        assert [r.layer for r in readings] == [0, 1, 2]
    with pytest.raises(TypeError, match="no step form"):
        adapters[0].mechanism.initial_state(1)
