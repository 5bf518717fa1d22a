"""Packaging: pins, version, entry point, and the scripts behind the make targets."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import seqstruct
from seqstruct.harness.paper import INSTALLED
from seqstruct.ops.compiled.build import library_path
from tests.requirements import EVERYTHING, EXTRAS, REQUIRED

ROOT = Path(__file__).resolve().parents[1]
# joeynmt is timed where someone has it: its own requirements do not fit beside this torch
NOT_REQUIRED = {"joeynmt", "pytest"}  # pytest is for `seqstruct.testing`, with the extra `test`
FAIRSEQS_OWN = {"tensorboard", "tensorboardx"}
COMMANDS = {"accelerate", "ipykernel", "pytest-xdist", "ruff"}  # the first: for the Trainer of transformers


def normal(name):
    return name.lower().replace("_", "-")


def numbers(version):
    return tuple(map(int, version.split(".")))


def imported(*places):
    """Top-level modules, neither ours nor the standard library's, that the files of some patterns import."""
    found = set()
    for path in (path for place in places for path in ROOT.glob(place)):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    ours = {"seqstruct", "tests", *(p.stem for p in (ROOT / "recipes").rglob("*.py"))}
    return found - ours - sys.stdlib_module_names


def distributions(modules):
    """The distribution that each module is of; a module that is not installed is taken for one of its own name."""
    of = packages_distributions()
    return {normal(of.get(module, [module])[0]) for module in modules}


def pins():
    """(name, version, marker) of each line of constraints.txt; names in lower case."""
    found = []
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            pin, _, marker = line.partition("; ")
            name, version = pin.split("==")
            found.append((normal(name), version, marker))
    return found


def test_the_least_version_of_each_requirement_is_the_oldest_pinned():
    for name, (relation, version) in EVERYTHING.items():
        pinned = [numbers(pin) for other, pin, _ in pins() if other == name.lower()]
        assert pinned, f"{name} is not pinned"
        wanted = numbers(version)
        assert min(pinned)[: len(wanted)] == wanted, f"{name}: {version} is required, pinned are {pinned}"
        assert relation == ">=" or pinned == [wanted]


def test_requirements_are_what_is_imported():
    found = distributions(imported("seqstruct/**/*.py", "recipes/**/*.py", "data-prep/**/*.py")) - NOT_REQUIRED
    extras = {name for extra in ("align", "gpu", "hf", "slurm", "statistics", "vectors") for name in EXTRAS[extra]}
    declared = {normal(name) for name in {*REQUIRED, *extras}}
    assert found ^ declared == FAIRSEQS_OWN


def test_extras_are_what_is_imported():
    test = {normal(name) for name in EXTRAS["test"].keys() - EXTRAS["hf"].keys()}
    others = {normal(name) for name in EVERYTHING} - test
    assert distributions(imported("tests/**/*.py", ".ci/*.py", "setup.py")) - others - {"setuptools"} == test - COMMANDS
    assert set(EXTRAS) == {"align", "bench", "hf", "test", "docs", "gpu", "slurm", "statistics", "vectors"}
    assert EXTRAS["hf"].items() <= EXTRAS["test"].items()


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
    assert seqstruct.__version__ not in (ROOT / "setup.py").read_text("utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^## (\S+)", changes, re.M)[0] == seqstruct.__version__


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


@pytest.mark.parametrize(
    "name", ["compiled.sh", "installed.sh", "interpreted.sh", "run", "settings.sh", "venv.sh", "wheel.sh"]
)
def test_scripts_have_help(name):
    done = run_script(name, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ")


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """{name: bytes} of what the sdist holds, and of what the wheel holds, whose library a stub has compiled."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    folder = tmp_path_factory.mktemp("dist")
    compiler = folder / "compiler"
    compiler.write_text("#!/bin/sh\nfor last; do :; done\necho compiled >$last\n")
    compiler.chmod(0o755)
    done = run_script("wheel.sh", str(folder), PYTHON=sys.executable, CXX=str(compiler))
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(folder.glob("*.tar.gz"))) as sdist:
        source = {m.name.partition("/")[2]: sdist.extractfile(m).read() for m in sdist if m.isfile()}
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return source, {name: wheel.read(name) for name in wheel.namelist()}


def tracked():
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name: (ROOT / name).read_bytes() for name in done.stdout.split("\0") if name}


def test_the_sdist_holds_what_git_tracks(archives):
    generated = {"PKG-INFO", "setup.cfg"}
    held = {name: data for name, data in archives[0].items()
            if name not in generated and not name.startswith("seqstruct.egg-info/")}
    assert held == tracked()


def test_the_wheel_holds_the_package_the_configs_and_what_report_reads(archives):
    expected = {}
    for name, data in tracked().items():
        if name.startswith("seqstruct/"):
            expected[name] = data
        elif name.startswith("configs/") or re.match(r"recipes/\w+/(paper\.json|records/)", name):
            expected[f"seqstruct/{INSTALLED}/{name}"] = data
    held = {name: data for name, data in archives[1].items() if ".dist-info/" not in name}
    assert held == {**expected, f"seqstruct/ops/compiled/{library_path().name}": b"compiled\n"}


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
    for target in ("demo", "test", "test-settings", "smoke", "lint", "venv", "clean"):
        assert f"\n{target}:" in makefile
