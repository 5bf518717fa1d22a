"""Packaging: pins, version, entry point, and the scripts behind the make targets."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import seqstruct

ROOT = Path(__file__).resolve().parents[1]
SETUP = (ROOT / "setup.py").read_text("utf-8")


def requirements():
    listed = re.search(r"install_requires=\[(.*?)\],\n", SETUP, re.S).group(1)
    extras = re.search(r"extras_require=\{(.*?)\n    \},", SETUP, re.S).group(1)
    return re.findall(r'"([A-Za-z0-9_.=-]+)"(?!:)', listed + extras)


def pins():
    """(name, version, marker) of each line of constraints.txt; names in lower case."""
    found = []
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            pin, _, marker = line.partition("; ")
            name, version = pin.split("==")
            found.append((name.lower().replace("_", "-"), version, marker))
    return found


def test_every_requirement_is_pinned():
    pinned = {name: version for name, version, _ in pins()}
    for requirement in requirements():
        name, _, version = requirement.partition("==")
        assert name in pinned
        assert version in ("", pinned[name])


def test_pins_are_published_versions_and_unique_for_each_python():
    for name, version, _ in pins():
        assert "+" not in version, f"{name}=={version}: a local version is on nobody else's index"
    marked = [(name, marker) for name, _, marker in pins()]
    assert len(set(marked)) == len(marked)
    for name in {name for name, marker in marked if marker}:
        markers = {marker for n, marker in marked if n == name}
        assert markers <= {'python_version < "3.11"', 'python_version >= "3.11"'}, name


def test_version_is_said_once():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {seqstruct.__version__}\n" in citation
    assert seqstruct.__version__ not in SETUP


def test_setup_reads_name_and_version_without_torch():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "setup.py", "--quiet", "--name", "--version"],
        cwd=ROOT, capture_output=True, text=True,
    )
    assert done.stdout.split() == ["seqstruct", seqstruct.__version__], done.stderr


def run_script(name, *arguments, **environment):
    return subprocess.run(
        ["bash", ROOT / ".ci" / name, *arguments], capture_output=True, text=True, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("name", ["venv.sh", "run"])
def test_scripts_have_help(name):
    done = run_script(name, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ")


def fake_python(folder, body):
    path = folder / "python3.12"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    "body, said",
    [
        ("exit 1", "is not Python 3.10 to 3.13: asked for its version it answered 'nothing'; name one"),
        (
            "echo 'pyenv: python3.12: command not found' >&2; echo >&2; echo 'try 3.11' >&2; exit 127",
            "asked for its version it answered 'pyenv: python3.12: command not found try 3.11'; name one",
        ),
        ("echo 3.9", "is not Python 3.10 to 3.13: asked for its version it answered '3.9'; name one"),
        (
            'case "$2" in *ensurepip*) exit 1;; *version*) echo 3.12;; esac',
            "has no venv module: install it (Debian and Ubuntu: apt-get install python3.12-venv)",
        ),
        (
            'case "$2" in *Python.h*) exit 1;; *version*) echo 3.12;; esac',
            "the headers of",
        ),
    ],
)
def test_an_unfit_machine_is_told_what_to_install(tmp_path, body, said):
    done = run_script("venv.sh", fake_python(tmp_path, body))
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.startswith("seqstruct: ")
    assert done.stderr.count("\n") == 1


def test_a_machine_without_a_compiler_is_told_so(tmp_path):
    (tmp_path / "bin").mkdir()
    for tool in ("bash", "dirname", "sh"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    python = fake_python(tmp_path, 'case "$2" in *version*) echo 3.12;; esac')
    done = run_script("venv.sh", python, PATH=str(tmp_path / "bin"), CXX="")
    assert done.returncode == 1
    assert "no C++ compiler was found" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_python_that_is_not_there_is_named():
    done = run_script("venv.sh", "python9.9")
    assert done.returncode == 1
    assert "there is no python9.9" in done.stderr


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("demo", "test", "smoke", "lint", "venv", "clean"):
        assert f"\n{target}:" in makefile
