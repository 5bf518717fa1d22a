"""The mark `training`: a test that trains without it fails, and with it says by how much it passes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
import pytest
import torch

def train():
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.5)
    (3 - weight).square().sum().backward()
    optimizer.step()
    return float(weight)

@pytest.fixture(scope="module")
def trained():
    return train()

@pytest.mark.training
def test_marked():
    for tried in (2, 1):
        assert train() > tried
    assert train() == 3

def test_unmarked():
    assert train() == 3

@pytest.mark.training
def test_marked_by_fixture(trained):
    assert 2 < trained

def test_unmarked_by_fixture(trained):
    pass

def test_another():
    assert 2 > 1
"""


def run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    here = ["-c", ROOT / ".pytest.ini", "--rootdir", folder]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *here, *words, folder], cwd=folder, env=environment,
        capture_output=True, text=True,
    )
    return done.stdout


def test_what_trains_is_marked_and_has_a_margin(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    plugin = "from tests import trainings\n\ndef pytest_configure(config):\n    trainings.register(config)\n"
    (tmp_path / "conftest.py").write_text(plugin, encoding="utf-8")
    printed = run(tmp_path)
    assert "2 failed, 3 passed" in printed and "margin" not in printed
    for name in ("test_unmarked", "test_unmarked_by_fixture"):
        assert f"test_it.py::{name} takes steps of an optimizer, and lacks the mark training" in printed
    printed = run(tmp_path, "-m", "training")
    margins = [line for line in printed.splitlines() if line.startswith("margin ")]
    assert "2 passed, 3 deselected" in printed
    assert [line.split("  ", 1)[1] for line in margins] == ["train() > tried: 3.0 > 1", "2 < trained: 2 < 3.0"]
