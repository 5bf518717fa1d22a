"""Kernels in C++ for CPUs, which take the place of the same computation in PyTorch where SEQSTRUCT_COMPILED=1.

They are compiled for the processor at hand when first used, with the compiler that CXX names or `c++`, and kept in the
user's cache folder (XDG_CACHE_HOME, or ~/.cache).  Every operator that has one says so and gives the same numbers, up
to rounding, without it.  float32 and float64.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

VARIABLE = "SEQSTRUCT_COMPILED"
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC", "-Wall")
SUFFIXES = {torch.float32: "f32", torch.float64: "f64"}


def usable(*tensors: Tensor | None) -> bool:
    """Whether compiled kernels are asked for and fit the tensors: on the CPU, all of them float32 or all float64.

    Raises ValueError if the variable is neither 0 nor 1, or if there is nothing to compile with.
    """
    asked = os.environ.get(VARIABLE, "0")
    if asked not in ("0", "1"):
        raise ValueError(f"expected {VARIABLE} to be 0 or 1, got {asked!r}")
    present = [x for x in tensors if x is not None]
    fits = all(x.device.type == "cpu" and x.dtype == present[0].dtype for x in present)
    return asked == "1" and fits and present[0].dtype in SUFFIXES and _library() is not None


def call(name: str, *arguments: Tensor | int | float | None) -> None:
    """Run the kernel `name` for the type of the first tensor; tensors are contiguous, None is a null pointer.

    The number of PyTorch's threads goes in front of the arguments.
    """
    first = next(x for x in arguments if isinstance(x, Tensor))
    function = getattr(_library(), f"{name}_{SUFFIXES[first.dtype]}")
    function(ctypes.c_int64(torch.get_num_threads()), *map(_argument, arguments))


def _argument(x: Tensor | int | float | None):
    if x is None:
        return ctypes.c_void_p(None)
    if isinstance(x, Tensor):
        return ctypes.c_void_p(x.data_ptr())
    return ctypes.c_double(x) if isinstance(x, float) else ctypes.c_int64(x)


@functools.cache
def _library() -> ctypes.CDLL:
    """The kernels, compiled unless the same sources were before, on the same kind of processor."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    folder = Path(__file__).parent
    sources = sorted(folder.glob("*.cpp"))
    digest = hashlib.sha256(_run([*compiler, *FLAGS, "-dM", "-E", "-x", "c++", os.devnull]).encode())
    for file in [*sources, *sorted(folder.glob("*.h"))]:
        digest.update(file.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seqstruct"
    path = cache / f"kernels-{digest.hexdigest()[:16]}.so"
    if not path.exists():
        logger.info("compiling kernels into %s, once for this processor: some seconds", path)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as beside:
            result = Path(beside) / path.name
            _run([*compiler, *FLAGS, *_parallel(compiler), *map(str, sources), "-o", str(result)])
            result.replace(path)
    return ctypes.CDLL(str(path))


def _parallel(compiler: list[str]) -> list[str]:
    """The option for OpenMP, where the compiler has it; one thread otherwise."""
    try:
        _run([*compiler, "-fopenmp", "-E", "-x", "c++", os.devnull])
    except ValueError:
        return []
    return ["-fopenmp"]


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ValueError(f"{VARIABLE}=1 needs a C++ compiler, which CXX may name: {error}") from error
    if done.returncode:
        raise ValueError(f"{VARIABLE}=1: {' '.join(command[:1])} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout
