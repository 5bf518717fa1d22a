"""Reading checkpoints: safely, and with one sentence for a file that is damaged, foreign or of another model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqstruct.bridge.earlier_plans import keep_meaning

ENTRIES: dict[str, tuple[type, ...]] = {
    "model": (Mapping,),
    "cfg": (Mapping, type(None)),
    "args": (argparse.Namespace, type(None)),
    "extra_state": (Mapping, type(None)),
    "optimizer_history": (list, type(None)),
}


class OtherArchitecture(ValueError):
    """A checkpoint's parameters are not those of the model."""


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """A fairseq checkpoint as a dictionary on the CPU, loaded with `weights_only=True`.

    Raises OSError if there is no such file, ValueError if it is truncated, foreign, or holds objects other than
    tensors and plain data.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint")
    torch.serialization.add_safe_globals([argparse.Namespace])
    try:
        with open(path, "rb") as stream:
            state = torch.load(stream, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file makes the unpickler raise whatever its bytes lead to
        reason = str(error).strip().split("\n")[0].split(". ")[0]
        reason = reason if " " in reason else f"{type(error).__name__} {reason}".strip()
        raise ValueError(f"{path}: not a whole fairseq checkpoint ({reason})") from None
    check_entries(path, state)
    keep_meaning(state)
    return state


def mapped(filename: str | Path) -> dict[str, Any] | None:
    """A checkpoint whose tensors are not read, or None if it cannot be."""
    if not Path(filename).is_file():
        return None
    try:
        state = torch.load(filename, map_location="cpu", weights_only=True, mmap=True)
        check_entries(filename, state)
        return state
    except Exception:  # a damaged file makes the unpickler raise whatever its bytes lead to; the loader reports it
        return None


def check_entries(path: str | Path, state: Any) -> None:
    """Raise ValueError, naming the file, unless what it holds has the form of a checkpoint."""
    if not isinstance(state, dict) or "model" not in state:
        raise ValueError(f"{path}: expected a fairseq checkpoint with a 'model' entry")
    for name, kinds in ENTRIES.items():
        if not isinstance(state.get(name), kinds):
            raise ValueError(f"{path}: not a fairseq checkpoint: its entry {name!r} is {type(state[name]).__name__}")


def configuration_of(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of a checkpoint by section, none where it has none; before there were sections, task and model had
    all of them."""
    if state.get("cfg"):
        return {name: options_of(section) for name, section in state["cfg"].items()}
    old = options_of(state.get("args"))
    return {name: {**old, "_name": old.get(kind)} for name, kind in (("task", "task"), ("model", "arch")) if old}


def options_of(section: Any) -> dict[str, Any]:
    """A section as a dictionary: stock parts of fairseq leave a Namespace."""
    return {} if section is None else dict(section) if isinstance(section, Mapping) else vars(section)


def place_of(tensor: Tensor) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """What two names of one tensor, as tied embeddings have, share: address, shape and strides."""
    return tensor.data_ptr() or id(tensor), tuple(tensor.shape), tensor.stride()


def check_parameters(own: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    """Raise OtherArchitecture if a checkpoint's parameters differ from a model's own in name or shape."""
    missing = [key for key in own if key not in found]
    surplus = [key for key in found if key not in own]
    if missing or surplus:
        what = f"it lacks {missing[0]}" if missing else f"it holds {surplus[0]}"
        count = len(missing) + len(surplus)
        raise OtherArchitecture(f"the checkpoint is of another architecture: {what} ({count} such differences)")
    for key, value in own.items():
        if found[key].shape != value.shape:
            raise OtherArchitecture(
                f"the checkpoint is of another architecture: {key} is {tuple(found[key].shape)} there and "
                f"{tuple(value.shape)} here"
            )
