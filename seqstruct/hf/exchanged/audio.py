"""Models of transformers import torchaudio where it is installed, and fail where that was built for another torch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType


@contextmanager
def without_broken_audio() -> Iterator[None]:
    """Where torchaudio is installed, as fairseq wants it, but cannot be loaded, an empty module stands in its place.

    What transformers would do with sound then fails when it is called; its models of text are none the worse.
    """
    broken = False
    try:
        import_module("torchaudio")
    except ImportError:
        pass
    except OSError:
        broken = True
    if broken:
        _forget()
        sys.modules["torchaudio"] = ModuleType("torchaudio")
    try:
        yield
    finally:
        if broken:
            _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchaudio"]:
        del sys.modules[name]
