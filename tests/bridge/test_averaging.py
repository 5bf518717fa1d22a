"""Checkpoints averaged."""

from __future__ import annotations

import pytest
import torch

from seqstruct.bridge.averaging import average_checkpoints
from seqstruct.bridge.checkpoints import load_checkpoint


def test_the_mean_of_what_is_real_and_the_last_of_what_is_not(tmp_path):
    values = [torch.tensor([1.0, 2.0]), torch.tensor([2.0, 6.0]), torch.tensor([6.0, 1.0])]
    for number, value in enumerate(values):
        model = {"weight": value.half(), "count": torch.tensor([number])}
        torch.save({"model": model, "cfg": None, "extra": number}, tmp_path / f"{number}.pt")
    average_checkpoints([tmp_path / f"{number}.pt" for number in range(3)], tmp_path / "mean.pt")
    mean = load_checkpoint(tmp_path / "mean.pt")
    assert torch.equal(mean["model"]["weight"], torch.tensor([3.0, 3.0]).half())
    assert mean["model"]["count"].item() == 2 and mean["extra"] == 2
    average_checkpoints([tmp_path / "1.pt"], tmp_path / "one.pt")
    assert torch.equal(load_checkpoint(tmp_path / "one.pt")["model"]["weight"], values[1].half())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.pt", "1.pt", "2.pt", "mean.pt", "one.pt"]


def test_wrong_input(tmp_path):
    with pytest.raises(ValueError, match="expected one checkpoint or more"):
        average_checkpoints([], tmp_path / "out.pt")
    assert not (tmp_path / "out.pt").exists()
