"""Files of a folder that transformers saved, checked before it reads them, for its own errors name no file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from seqstruct.data.files import undamaged

WEIGHTS, CONFIGURATION = "model.safetensors", "config.json"


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor in a file of safetensors.  Raises ValueError, naming the file, where it is damaged."""
    with undamaged(path, SafetensorError), safe_open(path, "pt") as saved:
        return {name: tuple(saved.get_slice(name).get_shape()) for name in saved.keys()}


def check_shapes(path: Path, found: Mapping[str, tuple[int, ...]], expected: Mapping[str, Tensor]) -> None:
    """Raise ValueError, naming the file, at the first of the tensors that is not of the expected shape."""
    for name, shape in found.items():
        if name in expected and shape != tuple(expected[name].shape):
            raise ValueError(f"{path}: {name} is {shape}, and {CONFIGURATION} beside it asks for "
                             f"{tuple(expected[name].shape)}")
