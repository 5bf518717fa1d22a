"""Reading checkpoints: safely, and with one sentence for a file that is damaged, foreign or of another model."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager
from fairseq.models import BaseFairseqModel
from fairseq.models.fairseq_model import FairseqMultiModel
from fairseq.trainer import Trainer
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


def check_entries(path: str | Path, state: Any) -> None:
    """Raise ValueError, naming the file, unless what it holds has the form of a checkpoint."""
    if not isinstance(state, dict) or "model" not in state:
        raise ValueError(f"{path}: expected a fairseq checkpoint with a 'model' entry")
    for name, kinds in ENTRIES.items():
        if not isinstance(state.get(name), kinds):
            raise ValueError(f"{path}: not a fairseq checkpoint: its entry {name!r} is {type(state[name]).__name__}")


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


def install() -> None:
    """Make every loading of this process name the file and what is wrong with it; a second call changes nothing."""
    if hasattr(checkpoint_utils.load_checkpoint_to_cpu, "names_the_file"):
        return
    checkpoint_utils.load_checkpoint_to_cpu = _diagnosing(checkpoint_utils.load_checkpoint_to_cpu)
    checkpoint_utils.load_checkpoint_to_cpu.names_the_file = True
    checkpoint_utils.load_model_ensemble_and_task = _naming(checkpoint_utils.load_model_ensemble_and_task)
    checkpoint_utils.load_checkpoint = _finding(checkpoint_utils.load_checkpoint)
    Trainer.load_checkpoint = _naming_one(Trainer.load_checkpoint)
    for model in (BaseFairseqModel, FairseqMultiModel):
        model.load_state_dict = _comparing(model.load_state_dict)


def _diagnosing(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_checkpoint_to_cpu(path: str, *rest: Any, **named: Any) -> Any:
        try:
            state = load(path, *rest, **named)
        except Exception as error:
            load_checkpoint(path)
            raise ValueError(f"{path}: not a fairseq checkpoint ({type(error).__name__}: {error})") from error
        check_entries(path, state)
        return state

    return load_checkpoint_to_cpu


def _finding(load: Callable) -> Callable:
    """Upstream starts anew, without a word that is seen, where the file of --restore-file is not there."""

    @functools.wraps(load)
    def load_checkpoint(cfg: Any, trainer: Trainer, *rest: Any, **named: Any) -> Any:
        path = cfg.restore_file
        if Path(path).name != "checkpoint_last.pt" and not (trainer.checkpoint_suffix or PathManager.exists(path)):
            raise FileNotFoundError(f"--restore-file {path}: no such checkpoint")
        return load(cfg, trainer, *rest, **named)

    return load_checkpoint


def _naming(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_model_ensemble_and_task(filenames: Sequence[str], *rest: Any, **named: Any) -> Any:
        try:
            return load(filenames, *rest, **named)
        except OtherArchitecture as error:
            raise ValueError(f"{' or '.join(map(str, filenames))}: {error}") from error

    return load_model_ensemble_and_task


def _naming_one(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_checkpoint(self: Trainer, filename: str, *rest: Any, **named: Any) -> Any:
        try:
            return load(self, filename, *rest, **named)
        except Exception as error:  # upstream hides what a model says of a checkpoint behind one of its own
            if isinstance(error.__context__, OtherArchitecture):
                raise ValueError(f"{filename}: {error.__context__}") from error
            raise

    return load_checkpoint


def _comparing(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_state_dict(self: BaseFairseqModel, state_dict: dict[str, Tensor], *rest: Any, **named: Any) -> Any:
        try:
            return load(self, state_dict, *rest, **named)
        except (RuntimeError, AttributeError):
            check_parameters(self.state_dict(), state_dict)
            raise

    return load_state_dict
