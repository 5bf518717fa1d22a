"""Versions, and that every checkpoint of a training run holds them."""

from types import SimpleNamespace

import torch

import seqstruct
from seqstruct.bridge.patches import resume
from seqstruct.bridge.versions import versions


def test_versions_of_what_is_installed():
    found = versions()
    assert found["seqstruct"] == seqstruct.__version__
    assert found["torch"] == torch.__version__
    assert all(type(value) is str for value in found.values())


def test_checkpoints_hold_them():
    saved = {}
    trainer = SimpleNamespace(lr_scheduler=None)
    resume.save_checkpoint(lambda _, filename, state: saved.update(state), trainer, "checkpoint.pt", {"val_loss": 0.5})
    assert saved["val_loss"] == 0.5
    assert saved["seqstruct_versions"] == versions()
