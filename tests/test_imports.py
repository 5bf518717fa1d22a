"""The rules of imports: models, tasks, criterions, cli -> bridge -> layers -> attention -> distributions -> ops ->
torch, never upward; no circle of modules; a structure of `ops` is reached by its face; and docs/architecture.md draws
which folder imports which."""

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "seqstruct"
DRAWING = ROOT / "docs" / "architecture.md"
FAIRSEQ = {"fairseq", "fairseq_cli", "omegaconf", "hydra"}
# Folders from the lowest level up; those on one level may import each other.
LEVELS = (
    ("ops",),
    ("distributions",),
    ("attention",),
    ("layers",),
    ("nn",),
    ("bridge",),
    ("criterions", "data", "hf", "models", "schedules", "scoring", "tasks", "testing"),
    ("benchmarks", "exchange", "harness", "loading", "plots", "search"),
    ("cli",),
)
LEVEL = {folder: level for level, folders in enumerate(LEVELS) for folder in folders}
DIVIDED = ("ops", "attention")  # folders whose own folders are drawn
CLOSED = tuple(  # to all, but for the face
    f"ops/{name}" for name in ("automata", "chains", "pushdown", "stratification", "superposition", "trees")
)
PLAIN_FOLDERS = ("ops", "distributions", "attention", "layers", "nn")
PLAIN = sorted(p for folder in PLAIN_FOLDERS for p in (PACKAGE / folder).rglob("*.py"))
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
    also = {"triton"} if path.name.startswith("triton") else set()  # imported where tensors ask for its kernels
    for name in imports(path):
        top = name.partition(".")[0]
        assert top in {"torch", "seqstruct"} | also or top in sys.stdlib_module_names, f"{path.name} imports {name}"


@cache
def modules():
    """The path of each module of the package by its name."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ALL}
    return {name.removesuffix(".__init__"): path for name, path in names.items()}


@cache
def graph():
    """Of each module the modules of the package that it imports, at whatever depth of nesting."""
    known = modules()
    found = {}
    for module, path in known.items():
        named = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                named |= {name if name in known else node.module for name in inner}
        found[module] = {name for name in named if name in known} - {module}
    return found


def circles(edges):
    """Sets of nodes of a graph that reach each other."""
    names = sorted(edges)
    number = {name: i for i, name in enumerate(names)}
    pairs = [(number[a], number[b]) for a, targets in edges.items() for b in targets]
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    matrix = csr_array(([1] * len(pairs), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(matrix, connection="strong")
    groups = {}
    for name, label in zip(names, labels.tolist(), strict=True):
        groups.setdefault(label, set()).add(name)
    return [group for group in groups.values() if len(group) > 1]


def place_of(module):
    """The folder of a module as it is drawn: "data", "ops", "ops/trees"; None of the package's own files."""
    parts = module.split(".")[1:]
    if not parts or not (PACKAGE / parts[0]).is_dir():
        return None
    divided = parts[0] in DIVIDED and len(parts) > 1 and (PACKAGE / parts[0] / parts[1]).is_dir()
    return "/".join(parts[: 1 + divided])


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == [{"b", "c"}]
    assert circles({"a": {"b"}, "b": set()}) == []


def test_no_modules_import_each_other_in_a_circle():
    for circle in circles(graph()):
        arrows = [f"{a} -> {b}" for a in sorted(circle) for b in sorted(graph()[a] & circle)]
        pytest.fail("a circle of imports: " + ", ".join(arrows))


def test_structures_are_imported_by_their_faces():
    for module, targets in graph().items():
        own = place_of(module) or ""
        for target in targets:
            other = place_of(target) or ""
            closed = other in CLOSED or (own.startswith("ops/") and other.startswith("ops/"))
            if closed and other not in (own, "ops/compiled"):
                face = f"seqstruct.{other.replace('/', '.')}"
                assert target == face, f"{module} imports {target}: expected what it needs in the face, {face}"


def drawn():
    """Of each folder in the table of docs/architecture.md those that it imports."""
    rows = re.findall(r"^\| `([\w/]+)` \| (.*) \|$", DRAWING.read_text("utf-8"), re.MULTILINE)
    return {folder: set(re.findall(r"`([\w/]+)`", others)) for folder, others in rows}


def test_the_drawing_has_the_imports_between_folders():
    found, table = {}, drawn()
    for module, targets in graph().items():
        folder = place_of(module)
        if folder is not None:
            others = found.setdefault(folder, set())
            others |= {place_of(target) for target in targets} - {folder, None}
    for folder, others in found.items():
        row = f"| `{folder}` | {', '.join(f'`{other}`' for other in sorted(others)) or 'nothing'} |"
        assert table.get(folder) == others, (
            f"{folder} imports {sorted(others)}, docs/architecture.md says {sorted(table.get(folder, ()))}: "
            f"mend the import, or, if it should be, the row: {row}"
        )
    assert set(table) == set(found), "docs/architecture.md has rows of folders that are not there"


@pytest.mark.parametrize("path", ALL, ids=lambda p: str(p.relative_to(ROOT)))
def test_pytest_is_for_the_laws_alone(path):
    assert folder_of(path) == "testing" or "pytest" not in imports(path)


def test_every_folder_has_a_level():
    assert {p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists()} == set(LEVEL)


def test_the_package_itself_imports_nothing():
    assert imports(PACKAGE / "__init__.py") == {"importlib", "importlib.import_module"}
    code = "import sys; before = set(sys.modules); import seqstruct; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}, check=True
    )
    assert done.stdout.split() == ["seqstruct"]


def test_fairseq_is_not_loaded():
    """By no folder; one after the other, so that the first that loads it is the one to mend."""
    code = "import importlib, json, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
    code += "    print(json.dumps([name, *sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *(f"seqstruct.{folder}" for folder in (*PLAIN_FOLDERS, "hf", "cli"))],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(PLAIN_FOLDERS) + 2
    for name, *loaded in map(json.loads, lines):
        assert FAIRSEQ.isdisjoint(loaded), f"{name} loads fairseq"


def test_commands_import_what_is_heavy_only_when_they_run():
    done = subprocess.run(
        [sys.executable, "-S", "-m", "seqstruct", "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
