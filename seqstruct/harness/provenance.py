"""What a record says of where it was made: versions, the commit, and the machine as far as numbers depend on it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

import torch

import seqstruct
from seqstruct.bridge.versions import versions as packages
from seqstruct.harness.records import DIRTY
from seqstruct.ops import gpu
from seqstruct.ops.compiled import VARIABLE, switched_on
from seqstruct.ops.linear import choice

REPOSITORY = Path(seqstruct.__file__).resolve().parent.parent
# what decides a number: records are left out, since the runs themselves append to them, and so are published numbers,
# lists of cells, and texts
DECISIVE = (
    "seqstruct", "configs", "data-prep", "recipes", ":(exclude)recipes/*/records/*", ":(exclude)recipes/*/paper.json",
    ":(exclude)recipes/*.txt", ":(exclude)*.md",
)
SWITCHES = ("SEQSTRUCT_DEVICE", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")


def versions() -> dict[str, str]:
    """Versions of what numbers may depend on, the platform, and the repository's commit if this is a checkout."""
    found = {**packages(), "platform": platform.platform()}
    commit = describe_commit(REPOSITORY)
    return found if commit is None else {**found, "commit": commit}


def describe_commit(repository: Path) -> str | None:
    """The last commit of code, recipes or configs, and "-dirty" where these differ from it; None outside a repository.

    Commits of records alone are passed over, since they may be made in a clone that nobody else has.
    """
    head = _git(repository, "log", "-1", "--format=%h", "--abbrev=7", "--", *DECISIVE)
    changes = _git(repository, "status", "--porcelain", "--", *DECISIVE)
    if not head or changes is None:
        return None
    return head + (DIRTY if changes else "")


def _git(repository: Path, *words: str) -> str | None:
    """What git prints; None where there is no git, or the folder is none of its top levels."""
    try:
        done = subprocess.run(["git", *words], cwd=repository, capture_output=True, text=True, check=False)
    except OSError:
        return None
    here = (repository / ".git").exists()
    return done.stdout.strip() if done.returncode == 0 and here else None


def machine() -> dict[str, str]:
    """Processor, instruction set, threads, libraries of matrix products, and kernels: what may change a number.

    Two runs of one command, seed and commit give the same
    number to the last bit where these agree; elsewhere sums are made in another order.
    """
    found = {
        "processor": processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": str(torch.get_num_threads()),
        "blas": _libraries(torch.__config__.show()),
        "kernels": "compiled" if switched_on() else "pytorch",
        "linear": choice(),
    }
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
        triton = gpu.installed() and os.environ.get(VARIABLE) != "0"
        found["gpu_kernels"] = f"triton {metadata.version('triton')}" if triton else "pytorch"
    return {**found, **{name: os.environ[name] for name in SWITCHES if name in os.environ}}


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name; on Linux with family and model, since a virtual machine's name may be that of many."""
    try:
        text = cpuinfo.read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.*)$", text, re.MULTILINE))
    if "model name" not in fields:
        return platform.machine()
    family = ", ".join(f"{name.removeprefix('cpu ')} {fields[name]}" for name in ("cpu family", "model")
                       if name in fields)
    return f"{fields['model name'].strip()} ({family})" if family else fields["model name"].strip()


def _libraries(configuration: str) -> str:
    """MKL and oneDNN, or what else torch was built with, from its own description."""
    patterns = {"MKL": r"Math Kernel Library Version (\S+?)(?:-Product)? ", "oneDNN": r"MKL-DNN v(\S+)"}
    found = {name: re.search(pattern, configuration) for name, pattern in patterns.items()}
    named = [f"{name} {match.group(1)}" for name, match in found.items() if match]
    other = re.search(r"BLAS_INFO=(\w+)", configuration)
    return ", ".join(named) or (other.group(1) if other else "unknown")
