"""The rule: models, tasks, criterions, cli -> bridge -> layers -> attention -> ops -> torch, never upward."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "seqstruct"
FAIRSEQ = {"fairseq", "fairseq_cli", "omegaconf", "hydra"}
# Folders from the lowest level up; those on one level may import each other.
LEVELS = (
    ("ops",),
    ("attention",),
    ("layers",),
    ("bridge",),
    ("benchmarks", "criterions", "data", "models", "schedules", "scoring", "tasks"),
    ("benchmarks", "harness", "plots"),
    ("cli",),
)
LEVEL = {folder: level for level, folders in enumerate(LEVELS) for folder in folders}
PLAIN = sorted(p for folder in ("ops", "attention", "layers") for p in (PACKAGE / folder).rglob("*.py"))
ALL = sorted(PACKAGE.rglob("*.py"))


def imports(path):
    """Every absolute module name that a file imports, at any depth of nesting; relative ones are refused."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def folder_of(path):
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else None


@pytest.mark.parametrize("path", ALL, ids=lambda p: str(p.relative_to(ROOT)))
def test_nothing_imports_upward(path):
    folder = folder_of(path)
    if folder is None:
        return
    for name in imports(path):
        package, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if package == "seqstruct" and target in LEVEL:
            assert LEVEL[target] <= LEVEL[folder], f"{folder} imports {name}"


@pytest.mark.parametrize("path", PLAIN, ids=lambda p: str(p.relative_to(ROOT)))
def test_ops_attention_and_layers_need_torch_and_the_standard_library_alone(path):
    for name in imports(path):
        top = name.partition(".")[0]
        assert top in {"torch", "seqstruct"} or top in sys.stdlib_module_names, f"{path.name} imports {name}"


def test_every_folder_has_a_level():
    assert {p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists()} == set(LEVEL)


def test_the_package_itself_imports_nothing():
    assert imports(PACKAGE / "__init__.py") == set()


@pytest.mark.parametrize("module", ["seqstruct.ops", "seqstruct.attention", "seqstruct.layers", "seqstruct.cli"])
def test_fairseq_is_not_loaded(module):
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    loaded = set(json.loads(done.stdout))
    assert loaded & FAIRSEQ == set()
    assert module in loaded


def test_commands_import_what_is_heavy_only_when_they_run():
    done = subprocess.run(
        [sys.executable, "-S", "-m", "seqstruct", "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
