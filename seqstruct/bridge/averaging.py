"""Checkpoint averaging (Vaswani et al. 2017, sec. 6.1): the mean of several checkpoints of one run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqstruct.bridge.checkpoints import load_checkpoint, place_of

EPOCH = re.compile(r"checkpoint(\d+)\.pt")
UPDATE = re.compile(r"checkpoint_\d+_(\d+)\.pt")


def average_checkpoints(paths: Sequence[str | os.PathLike], out: str | os.PathLike, *, running: bool = False) -> None:
    """Write the last checkpoint of `paths` to `out` with the mean of all their floating-point parameters and buffers.

    What is no floating-point number, such as counters, is the last one's; so are configuration and optimizer.
    Random features are one draw for a whole run, so that their mean is that draw; a performer's that are redrawn in
    training are not.  running: of the running averages that `--store-ema` keeps, not of the parameters.
    Raises ValueError if there is no checkpoint, `out` is one of them, two differ in the names or shapes of their
    parameters, or one has no running average; OSError if `out` cannot be written; and what `load_checkpoint` raises.
    Memory: two checkpoints.
    """
    if not paths:
        raise ValueError("average_checkpoints: expected one checkpoint or more, got none")
    if os.path.realpath(out) in map(os.path.realpath, paths):
        raise ValueError(f"{out}: expected another file than the checkpoints whose mean it is")
    total: dict[str, Tensor] = {}
    state: dict[str, Any] = {}
    for path in paths:
        state = load_checkpoint(path)
        model = _parameters(path, state, running)
        if total:
            _check_same(path, model, paths[0], total)
        for name, value in model.items():
            exact = value.double() if value.is_floating_point() else value
            total[name] = total[name] + exact if name in total and value.is_floating_point() else exact
    means: dict[Any, Tensor] = {}  # one for all names of a tensor
    for name, value in model.items():
        mean = (total.pop(name) / len(paths)).to(value.dtype) if value.is_floating_point() else value
        means.setdefault(place_of(value), mean)
    state["model"] = {name: means[place_of(value)] for name, value in model.items()}
    _write(state, Path(out))


def last_checkpoints(folder: str | os.PathLike, count: int) -> list[Path]:
    """The last checkpoints of a run's folder, the earliest first: those of epochs, or, without any, those of updates.

    Raises ValueError if there are fewer than `count`, or that is below 1.
    """
    if count < 1:
        raise ValueError(f"expected 1 checkpoint or more to average, got {count}")
    found: list[Path] = []
    for pattern in (EPOCH, UPDATE):
        numbered = {path: pattern.fullmatch(path.name) for path in Path(folder).iterdir()}
        found = sorted((path for path in numbered if numbered[path]), key=lambda path: int(numbered[path][1]))
        if found:
            break
    if count > len(found):
        raise ValueError(f"{folder}: expected {count} checkpoints of epochs (checkpoint1.pt, ...) or of updates "
                         f"(checkpoint_1_1000.pt, ...), found {len(found)}")
    return found[-count:]


def _parameters(path: str | os.PathLike, state: Mapping[str, Any], running: bool) -> Mapping[str, Tensor]:
    model = (state.get("extra_state") or {}).get("ema") if running else state["model"]
    if running and not isinstance(model, Mapping):
        raise ValueError(f"{path}: no running average; training keeps one with --store-ema")
    strange = [name for name, value in model.items() if not isinstance(value, Tensor)]
    if strange:
        raise ValueError(f"{path}: expected tensors as parameters, {strange[0]} is {type(model[strange[0]]).__name__}")
    return model


def _check_same(path: Any, model: Mapping[str, Tensor], first: Any, total: Mapping[str, Tensor]) -> None:
    for name in sorted(model.keys() | total.keys()):
        if name not in model or name not in total:
            raise ValueError(f"{path if name in total else first} has no {name}, unlike "
                             f"{first if name in total else path}: not checkpoints of one model")
        if model[name].shape != total[name].shape:
            raise ValueError(f"{name} is {tuple(model[name].shape)} in {path} and {tuple(total[name].shape)} in "
                             f"{first}: not checkpoints of one model")


def _write(state: dict[str, Any], out: Path) -> None:
    beside = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as stream:
            torch.save(state, stream)
        os.replace(beside, out)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(out)) from error
    finally:
        with suppress(OSError):
            beside.unlink()
