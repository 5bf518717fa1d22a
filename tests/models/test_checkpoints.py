"""Checkpoints of an earlier commit, one of each model, load through fairseq and give the same numbers."""

from __future__ import annotations

import functools
import json

import pytest
import torch
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY
from torch.testing import assert_close

from seqstruct.bridge.checkpoints import load_checkpoint
from tests.golden.checkpoints.make import CASES, FOLDER, MANIFEST, compute, load, made_on, read_outputs

outputs = functools.cache(read_outputs)


@functools.cache
def exact(case: str) -> bool:
    """Whether numbers are made as those of the manifest were."""
    manifest = json.loads(MANIFEST.read_text())
    made = {**manifest, **manifest["renewed"].get(case, {})}
    return all(made[name] == value for name, value in made_on().items())


@pytest.mark.parametrize("name", list(CASES))
def test_an_earlier_checkpoint_gives_the_same_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSTRUCT_COMPILED", "0")
    expected = outputs()[name]
    model, task = load(name)
    found = compute(model, task, CASES[name].kind, expected["input"])
    assert found.keys() == expected["output"].keys()
    for part, values in expected["output"].items():
        if exact(name):
            assert torch.equal(found[part], values), (part, (found[part] - values).abs().nan_to_num().max().item())
        assert_close(found[part], values, rtol=1e-6, atol=1e-9)


def test_there_is_one_of_each_registered_model() -> None:
    ours = {name for name, model in MODEL_REGISTRY.items() if model.__module__.startswith("seqstruct.")}
    presets = [load_checkpoint(FOLDER / f"{name}.pt")["cfg"]["model"]["_name"] for name in CASES]
    assert {ARCH_MODEL_NAME_REGISTRY.get(name, name) for name in presets} == ours
    assert {path.stem for path in FOLDER.glob("*.pt")} == set(CASES)
