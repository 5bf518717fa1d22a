"""Checkpoints that are not what they should be."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from seqstruct.bridge.checkpoints import load_checkpoint


def test_a_missing_truncated_or_foreign_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such checkpoint"):
        load_checkpoint(tmp_path / "none.pt")
    whole = tmp_path / "whole.pt"
    torch.save({"model": {"weight": torch.zeros(1000)}, "cfg": None}, whole)
    assert set(load_checkpoint(whole)) == {"model", "cfg"}
    content = whole.read_bytes()
    cut = tmp_path / "cut.pt"
    for size in (0, 10, len(content) // 2, len(content) - 20):
        cut.write_bytes(content[:size])
        with pytest.raises(ValueError, match="cut.pt: not a whole fairseq checkpoint"):
            load_checkpoint(cut)
    cut.write_text("a text file\n")
    with pytest.raises(ValueError, match="not a whole fairseq checkpoint"):
        load_checkpoint(cut)
    torch.save([1, 2], cut)
    with pytest.raises(ValueError, match="with a 'model' entry"):
        load_checkpoint(cut)


class Planted:
    """What an attacker's file would hold."""

    def __reduce__(self) -> tuple:
        return print, ("executed",)


def test_code_in_a_file_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"model": {}, "extra": Planted()}, tmp_path / "x.pt")
    with pytest.raises(ValueError, match="not a whole fairseq checkpoint"):
        load_checkpoint(tmp_path / "x.pt")
    assert "executed" not in capsys.readouterr().out
