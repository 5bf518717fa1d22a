"""What a file of this project may not have: undue length, paths of the machine, docstrings that say nothing."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES, MOST_COLUMNS = 400, 120
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home|root|Users|opt|mnt)/\w|(?<![\w.])/tmp/\w")


def tracked():
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]


def test_files_and_lines_are_of_moderate_length():
    for path in tracked():
        if path.suffix in {".py", ".sh", ".cpp", ".h"}:
            lines = path.read_text("utf-8").split("\n")
            assert len(lines) <= MOST_LINES + 1, f"{path.relative_to(ROOT)} has {len(lines) - 1} lines"
            longest = max(range(len(lines)), key=lambda i: len(lines[i]))
            columns = len(lines[longest]) if path.suffix != ".sh" else 0
            assert columns <= MOST_COLUMNS, f"{path.relative_to(ROOT)}:{longest + 1} has {columns} columns"


def test_no_path_of_a_machine():
    for path in tracked():
        if path.suffix in {".py", ".sh", ".md", ".yaml", ".jsonl", ".cff", ".txt"} and "golden" not in path.parts:
            found = MACHINE_PATH.search(path.read_text("utf-8"))
            assert path == Path(__file__) or not found, f"{path.relative_to(ROOT)}: {found.group()}"


def says_something(name, docstring):
    """Whether a docstring has three words beside those of the name that it stands under."""
    own = set(re.findall("[a-z0-9]+", re.sub("([A-Z])", r" \1", name).lower()))
    words = re.findall(r"\w+", docstring)
    return sum(word.lower() not in own for word in words) >= 3 and "option of that name" not in docstring


@pytest.mark.parametrize(
    "name, docstring, said",
    [
        ("size", "The size.", False),
        ("num_features", "The option of that name.", False),
        ("MeanPool", "Mean pool of N.", False),
        ("bound", "d.", False),
        ("bound", "d, the largest value.", True),
        ("scores", "B T S.", True),
    ],
)
def test_what_says_something(name, docstring, said):
    assert says_something(name, docstring) == said


def test_public_docstrings_say_something():
    for path in sorted((ROOT / "seqstruct").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                name = getattr(node, "name", path.stem)
                docstring = None if re.match(r"_(?!_)", name) else ast.get_docstring(node)
                assert docstring is None or says_something(name, docstring), f"{path}: {name}: {docstring!r}"


def test_no_two_classes_have_one_name():
    found = {}
    for path in tracked():
        if path.suffix == ".py" and ROOT / "seqstruct" in path.parents:
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
