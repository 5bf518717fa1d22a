"""`--user-dir` registers everything of the package once, by path and by name, in a fresh process."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.front_door import PLUGIN, fairseq, sizes

PACKAGE = Path(PLUGIN)
SCAN = """
import argparse, json, os, sys
from fairseq import criterions, models, optim, tasks, utils
from fairseq.optim import lr_scheduler
stock = {
    "register_model": models.MODEL_REGISTRY, "register_model_architecture": models.ARCH_MODEL_REGISTRY,
    "register_task": tasks.TASK_REGISTRY, "register_criterion": criterions.CRITERION_REGISTRY,
    "register_optimizer": optim.OPTIMIZER_REGISTRY, "register_lr_scheduler": lr_scheduler.LR_SCHEDULER_REGISTRY,
}
before = {kind: set(names) for kind, names in stock.items()}
for user_dir in sys.argv[2:]:  # fairseq is imported once, the package by each child anew
    if os.fork():
        os.wait()
        continue
    if not os.path.isabs(user_dir):
        os.chdir(sys.argv[1])
        sys.path.insert(0, sys.argv[1])
    utils.import_user_module(argparse.Namespace(user_dir=user_dir))
    utils.import_user_module(argparse.Namespace(user_dir=user_dir))
    files = [found for found in (getattr(module, "__file__", None) for module in list(sys.modules.values()))
             if found and "seqstruct" in found.split("/")]
    print(json.dumps([{kind: sorted(set(names) - before[kind]) for kind, names in stock.items()}, files]))
    break
"""


def decorated() -> dict[str, set[str]]:
    """The names in the decorators of the package's files, and of `preset`; a model is an architecture of its own name
    too.
    """
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "preset":
                found.setdefault("register_model_architecture", set()).add(node.args[1].value)
            for call in getattr(node, "decorator_list", ()):
                kind = getattr(getattr(call, "func", None), "id", "")
                if kind.startswith("register_") and kind != "register_attention":
                    found.setdefault(kind, set()).add(call.args[-1].value)
    found["register_model_architecture"] |= found["register_model"]
    return found


def test_everything_is_registered_once(tmp_path: Path) -> None:
    given = [PLUGIN, PACKAGE.name, f"{PLUGIN}/"]
    done = subprocess.run(
        [sys.executable, "-c", SCAN, PACKAGE.parent, *given], cwd=tmp_path, capture_output=True, text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(found) == len(given), done.stderr
    for registered, files in found:
        assert {kind: set(names) for kind, names in registered.items()} == decorated()
        assert len(files) == len(set(files)), "a file was imported under two names"


@pytest.mark.training
def test_what_is_trained_so_loads_in_the_command(
    reversals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PACKAGE.parent)
    fairseq("train", reversals / "lm", "--user-dir", PACKAGE.name, "--task", "language_modeling", "--arch",
            "structured_transformer_lm", "--decoder-self-attention", "softmax + lsh(rounds=2)",
            *sizes("decoder", heads=2, layers=2), "--optimizer", "adam", "--batch-size", 9, "--max-update", 1,
            "--disable-validation", "--no-epoch-checkpoints", "--tokens-per-sample", 16, "--save-dir", tmp_path)
    draw = ["plot", "attention", tmp_path / "checkpoint_last.pt", "ein haus", "--out", tmp_path / "drawn.png"]
    done = subprocess.run([sys.executable, "-m", "seqstruct", *map(str, draw)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("drawn*"))
