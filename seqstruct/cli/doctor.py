"""`seqstruct doctor`: whether this machine can run seqstruct, and the command that mends each mismatch.

It looks at Python, torch, fairseq, hydra, omegaconf, numpy, the compiler and the accelerator; the exit status is 1 if
something that is required is broken.
Standard library only: it has to run where torch or fairseq are missing or broken.  What may crash is imported in a
process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Optional

import seqstruct

OK, WARNING, BROKEN = "ok", "warning", "broken"

FAIRSEQ = "fairseq-fixed==0.12.3.1"
HYDRA = "hydra-core==1.3.2"
OMEGACONF = "omegaconf==2.3.0"
PYTHONS = ((3, 10), (3, 13))
TORCH_LEAST = (2, 13)
NUMPY_LEAST = (2, 2)
OTHERS = (
    "scipy", "sacrebleu", "sacremoses", "sentencepiece", "protobuf", "subword-nmt", "pillow", "matplotlib", "rich",
    "tqdm", "tensorboard", "tensorboardX", "PyYAML", "pooch", "requests",
)

# Extension modules are built against one numpy and one torch; loading them shows whether these are still there.
FAIRSEQ_PROBE = "import fairseq, fairseq.data.data_utils_fast, fairseq.data.token_block_utils_fast, fairseq.libbleu"
PLUGIN_PROBE = "import seqstruct.models, seqstruct.tasks"
TORCH_PROBE = """
import json, torch
cuda = torch.cuda.is_available()
print(json.dumps({
    "built_for": torch.version.cuda or torch.version.hip,
    "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else [],
    "mps": torch.backends.mps.is_available(),
}))
"""
# False where the environment switches them off
OPERATORS_PROBE = """
import json, logging
logging.disable()
from seqstruct.ops.compiled import build, switched_on
print(json.dumps([switched_on(), build.library_path().name, build.COMMAND]))
"""


@dataclass(frozen=True)
class Check:
    """One line of the report: state is "ok", "warning" or "broken"; fix is what to run or do, or empty."""

    name: str
    state: str
    found: str
    fix: str = ""

    def __str__(self) -> str:
        line = f"{self.state:8} {self.name:12} {self.found}"
        return f"{line}\n{'':21} fix: {self.fix}" if self.fix else line


@dataclass(frozen=True)
class Probe:
    """What came of running a line of Python in a process of its own: its output, or the last line of its error."""

    output: str = ""
    error: str = ""


def probe(code: str, timeout: float = 300.0) -> Probe:
    """Run code in a new interpreter, for at most so many seconds."""
    environment = dict(os.environ)
    root = str(Path(seqstruct.__file__).resolve().parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, env=environment
        )
    except subprocess.TimeoutExpired:
        return Probe(error=f"no answer in {timeout:.0f} s")
    if done.returncode == 0:
        return Probe(output=done.stdout)
    lines = done.stderr.strip().splitlines()
    return Probe(error=lines[-1] if lines else f"exit status {done.returncode}")


def installed(name: str) -> Optional[str]:
    """The version of an installed distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "2.13.0+cpu" is (2, 13, 0)."""
    numbers = []
    for part in version.split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def check_python(version: tuple[int, int]) -> Check:
    """Whether fairseq-fixed and seqstruct run on this Python."""
    found = f"{version[0]}.{version[1]} ({sys.executable})"
    if PYTHONS[0] <= version <= PYTHONS[1]:
        return Check("Python", OK, found)
    return Check("Python", BROKEN, found, "use Python 3.10 to 3.13, in a checkout: make PYTHON=python3.12 venv")


def check_least(name: str, version: Optional[str], least: tuple[int, ...], imported: Probe = Probe()) -> Check:
    """Whether a distribution is there, new enough and imports."""
    if version is None:
        return Check(name, BROKEN, "not installed", f"pip install {name}")
    if release(version) < least:
        return Check(name, BROKEN, f"{version}, older than {dotted(least)}", f"pip install --upgrade {name}")
    if imported.error:
        return Check(
            name, BROKEN, f"{version} does not import: {imported.error}", f"pip install --force-reinstall {name}"
        )
    return Check(name, OK, version)


def check_fairseq(fixed: Optional[str], upstream: Optional[str], python: tuple[int, int], imported: Probe) -> Check:
    """Which fairseq is there, whether it is the one that fits, and whether it imports with its extensions.

    fixed, upstream: the versions of the distributions fairseq-fixed and fairseq, None where not installed.
    """
    install, tested = f"pip install {FAIRSEQ}", f"tested is {FAIRSEQ}"
    rebuild = f"pip install --force-reinstall --no-deps --no-cache-dir --no-build-isolation {FAIRSEQ}"
    theirs, replace = f"upstream's fairseq {upstream}", f"pip uninstall -y fairseq && {install}"
    reason = "does not run on Python 3.11 and later" if python >= (3, 11) else imported.error
    cases = (  # the first that holds
        (fixed and upstream, BROKEN, f"fairseq-fixed {fixed} and {theirs} are installed over each other",
         f"pip uninstall -y fairseq fairseq-fixed && {install}"),
        (upstream and imported.error, BROKEN, f"{theirs} does not import: {reason}", replace),
        (upstream and release(upstream) < (0, 12, 3), BROKEN, f"{theirs} is older than 0.12.3", replace),
        (upstream, WARNING, f"{theirs} imports; {tested}, the same code", replace),
        (fixed and imported.error, BROKEN, f"fairseq-fixed {fixed} does not import: {imported.error}", rebuild),
        (fixed and fixed != FAIRSEQ.partition("==")[2], WARNING, f"fairseq-fixed {fixed}; {tested}", install),
        (fixed, OK, f"fairseq-fixed {fixed}", ""),
        (imported.error, BROKEN, "not installed", install),
        (True, WARNING, f"imports, but was not installed by pip; {tested}", install),
    )
    return next(Check("fairseq", *told) for holds, *told in cases if holds)


def check_pinned(name: str, version: Optional[str], wanted: str) -> Check:
    """Whether a distribution has the first two numbers of its wanted version, which fairseq asks for."""
    if version is None:
        return Check(name, BROKEN, "not installed", f"pip install {wanted}")
    if release(version)[:2] != release(wanted.partition("==")[2])[:2]:
        return Check(name, BROKEN, f"{version}; fairseq needs {wanted}", f"pip install {wanted}")
    return Check(name, OK, version)


def check_compiler(compiler: Optional[str], headers: bool, needed: bool) -> Check:
    """Whether fairseq could be built from source: a C++ compiler and Python's headers.  needed: it is not built yet."""
    state = BROKEN if needed else WARNING
    if compiler is None:
        fix = "apt-get install g++ (Debian, Ubuntu), xcode-select --install (macOS)"
        return Check("compiler", state, "no C++ compiler; building fairseq needs one", fix)
    if not headers:
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-dev"
        return Check("compiler", state, f"{compiler}, but no Python.h", f"apt-get install {package} (Debian, Ubuntu)")
    return Check("compiler", OK, compiler)


def check_accelerator(imported: Probe, driver: bool) -> Check:
    """Which accelerator torch sees.  driver: an NVIDIA driver is installed."""
    if imported.error:
        return Check("accelerator", WARNING, "unknown: torch does not import")
    seen = json.loads(imported.output)
    if seen["devices"]:
        return Check("accelerator", OK, f"{', '.join(seen['devices'])} (torch built for {seen['built_for']})")
    if driver and not seen["built_for"]:
        fix = "install the torch build for your CUDA"
        return Check("accelerator", WARNING, "an NVIDIA driver is there, but this torch is built for CPU only", fix)
    if driver:
        fix = "update the driver, or install the torch build for your CUDA"
        return Check("accelerator", WARNING, f"torch is built for {seen['built_for']} but sees no device", fix)
    if seen["mps"]:
        return Check("accelerator", OK, "Apple MPS, which fairseq does not use: training runs on the CPU")
    return Check("accelerator", OK, "none: training runs on the CPU")


def check_operators(imported: Probe) -> Check:
    """Whether seqstruct's own operators were built, or PyTorch's take their place."""
    if imported.error:
        return Check("operators", WARNING, f"seqstruct's were not asked: {imported.error}")
    on, name, command = json.loads(imported.output)
    if on:
        return Check("operators", OK, f"seqstruct's, compiled for CPUs ({name})")
    if os.environ.get("SEQSTRUCT_COMPILED") == "0":
        return Check("operators", OK, "PyTorch's, since SEQSTRUCT_COMPILED=0")
    found = "PyTorch's, slower on CPUs: seqstruct's were not built for this version of it"
    return Check("operators", WARNING, found, f"{command}, where there are torch and a C++ compiler")


def check_others(versions: dict[str, Optional[str]]) -> Check:
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        return Check("packages", BROKEN, f"not installed: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    return Check("packages", OK, ", ".join(f"{name} {version}" for name, version in versions.items()))


def check_plugin(imported: Probe) -> Check:
    if imported.error:
        return Check("seqstruct", BROKEN, f"{seqstruct.__version__} does not import: {imported.error}")
    return Check("seqstruct", OK, f"{seqstruct.__version__} ({Path(seqstruct.__file__).parent})")


def examine() -> list[Check]:
    """All checks of this machine; the plugin itself only where the rest is sound."""
    python = sys.version_info[:2]
    torch, fairseq = probe(TORCH_PROBE), probe(FAIRSEQ_PROBE)
    compiler = next(filter(None, (shutil.which(c) for c in (os.environ.get("CXX", "c++"), "g++", "clang++"))), None)
    headers = Path(sysconfig.get_path("include"), "Python.h").exists()
    checks = [
        check_python(python),
        check_least("torch", installed("torch"), TORCH_LEAST, torch),
        check_fairseq(installed("fairseq-fixed"), installed("fairseq"), python, fairseq),
        check_pinned("hydra", installed("hydra-core"), HYDRA),
        check_pinned("omegaconf", installed("omegaconf"), OMEGACONF),
        check_least("numpy", installed("numpy"), NUMPY_LEAST),
        check_others({name: installed(name) for name in OTHERS}),
        check_compiler(compiler, headers, needed=bool(fairseq.error)),
        check_operators(probe(OPERATORS_PROBE)),
        check_accelerator(torch, driver=shutil.which("nvidia-smi") is not None),
    ]
    if not any(check.state == BROKEN for check in checks):
        checks.append(check_plugin(probe(PLUGIN_PROBE)))
    return checks


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes nothing of its own."""


def run(args: argparse.Namespace) -> int:
    checks = examine()
    for check in checks:
        print(check)
    return int(any(check.state == BROKEN for check in checks))
