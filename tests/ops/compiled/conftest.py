"""Switching compiled kernels on."""

from __future__ import annotations

import os
import shlex
import shutil

import pytest

from seqstruct.ops.compiled import VARIABLE
from seqstruct.ops.compiled.build import build, library_path


@pytest.fixture(scope="session")
def library():
    """The operators' library of these sources, built if need be; skips where there is nothing to build it with."""
    if not library_path().exists():
        compiler = shlex.split(os.environ.get("CXX") or "c++")[0]
        if shutil.which(compiler) is None:
            pytest.skip(f"no C++ compiler {compiler} here")
        build()
    return library_path()


@pytest.fixture()
def compiled(monkeypatch, library):
    """compiled(True) switches kernels on, compiled(False) off."""
    return lambda on: monkeypatch.setenv(VARIABLE, str(int(on)))


@pytest.fixture()
def both(compiled):
    """both(results): with kernels, which stay on, and with PyTorch's operators."""

    def run(results):
        found = []
        for on in (False, True):
            compiled(on)
            found.append(results())
        return found[::-1]

    return run


@pytest.fixture()
def shared(compiled, threads):
    """shared(results): with kernels, on one thread and on two."""

    def run(results):
        compiled(True)
        alone = results()
        threads(2)
        return alone, results()

    return run
