"""The blocks of docs/hugging_face.md run one after another, in a folder with the model that they name."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from seqstruct.cli import main

pytestmark = pytest.mark.training  # uses a trained model

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "hugging_face.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(python|bash)\n(.*?)^```$", TEXT, re.S | re.M)


@pytest.mark.slow
def test_the_blocks_run(translation, tmp_path, monkeypatch, capsys):
    run = tmp_path / "runs" / "mine"
    run.mkdir(parents=True)
    shutil.copy(translation.checkpoint, run)
    shutil.copytree(translation.data, tmp_path / "data-bin" / "mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    names = {"__name__": "example"}
    for kind, block in BLOCKS:
        if kind == "bash":
            assert main(shlex.split(block)[1:]) == 0
        else:
            exec(compile(block, "hugging_face.md", "exec"), names)
    assert Path("runs/back/checkpoint.pt").is_file()
    assert names["greedy"].shape == names["beams"].shape == (2, 12)
    assert names["continued"].shape == (2, 12) and names["errors"].shape == (5, 2)
    assert "SeqstructForSeq2SeqLM" in capsys.readouterr().out
