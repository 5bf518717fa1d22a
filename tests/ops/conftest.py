"""With compiled kernels, where they were built, and without."""

from __future__ import annotations

import pytest

from seqstruct.ops.compiled import VARIABLE


@pytest.fixture(params=[False, True], ids=["pytorch", "kernels"])
def compiled_or_not(request, monkeypatch):
    if not request.param:
        monkeypatch.setenv(VARIABLE, "0")
