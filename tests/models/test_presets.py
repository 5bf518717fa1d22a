"""What presets share; every registered preset fills in what was not given, and leaves what was."""

from __future__ import annotations

import argparse
import dataclasses

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY

import seqstruct.models  # noqa: F401  registers them
from seqstruct.models.presets import both_sides, set_default

PRESETS = [
    name for name, model in ARCH_MODEL_REGISTRY.items()
    if model.__module__.startswith("seqstruct.") and name != ARCH_MODEL_NAME_REGISTRY[name]
]


def test_what_is_given_stays() -> None:
    given = argparse.Namespace(layers=3, size=None, off=False)
    set_default(given, layers=5, size=7, off=True, new=1)
    assert vars(given) == {"layers": 3, "size": 7, "off": False, "new": 1}


def test_functions_see_what_is_given_and_what_is_set() -> None:
    given = argparse.Namespace(size=7)
    set_default(given, inner=lambda cfg: cfg.size * cfg.layers, size=5, layers=2)
    assert vars(given) == {"size": 7, "layers": 2, "inner": 14}


def test_both_sides() -> None:
    assert both_sides(layers=2) == {"encoder_layers": 2, "decoder_layers": 2}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_options_of_its_model_alone(name: str) -> None:
    options = {f.name for f in dataclasses.fields(MODEL_DATACLASS_REGISTRY[ARCH_MODEL_NAME_REGISTRY[name]])}
    found = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[name](found)
    assert set(vars(found)) <= options
    given = argparse.Namespace(**{option: "given" for option in vars(found) if not option.endswith("embed_dim")})
    before = dict(vars(given))
    ARCH_CONFIG_REGISTRY[name](given)
    assert before.items() <= vars(given).items()
