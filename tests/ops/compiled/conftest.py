"""Switching compiled kernels on."""

from __future__ import annotations

import os
import shlex
import shutil

import pytest

from seqstruct.ops.compiled import VARIABLE


@pytest.fixture()
def compiled(monkeypatch):
    """compiled(True) switches kernels on, compiled(False) off; skips where there is nothing to compile with."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler {compiler} here")
    return lambda on: monkeypatch.setenv(VARIABLE, str(int(on)))
