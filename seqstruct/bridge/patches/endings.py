"""Commands that fail end with one sentence (`seqstruct.bridge.failures`), and leave nothing useless behind."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Callable

from fairseq import checkpoint_utils
from fairseq.trainer import Trainer
from hydra.core.utils import JobReturn, JobStatus

from seqstruct.bridge import failures
from seqstruct.bridge.patches.patch import patch


@patch(sys, "excepthook")
def excepthook(_: Callable, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A mistake of everyday ends in pages of traceback."""
    failures.report(kind, error, trace)


@patch(checkpoint_utils, "verify_checkpoint_directory")
def verify_checkpoint_directory(verify: Callable, save_dir: str) -> None:
    """Folders made for a run that fails at once stay, and one that cannot be made goes without its name."""
    path = Path(save_dir).absolute()
    failures.made.extend(reversed([folder for folder in (path, *path.parents) if not folder.exists()]))
    try:
        verify(save_dir)
    except OSError as error:
        raise OSError(error.errno, error.strerror, save_dir) from error


@patch(checkpoint_utils, "checkpoint_paths")
def checkpoint_paths(find: Callable, path: str, pattern: str = r"checkpoint(\d+)\.pt", keep_match: bool = False) -> Any:
    """--keep-best-checkpoints does not know its files of negative values, and removes none of them."""
    return find(path, pattern.replace(r"(\d+\.?\d*)", r"(-?\d+\.?\d*)"), keep_match)


@patch(Trainer, "save_checkpoint")
def save_checkpoint(save: Callable, self: Trainer, filename: str, extra_state: Any) -> Any:
    """A crash.pt is written for a mistake, and before the first update: it holds nothing that is not elsewhere."""
    error = sys.exc_info()[1]
    if Path(filename).name == "crash.pt" and error is not None:
        restored = self._optim_history[-1].get("num_updates") if self._optim_history else 0
        if self.get_num_updates() in (0, restored) or failures.is_mistake(error):
            return None
    return save(self, filename, extra_state)


@patch(JobReturn, "return_value")
def return_value(result: Callable, self: JobReturn) -> Any:
    """hydra prints the overrides of a job that failed before the error that it ended with."""
    if self.status == JobStatus.FAILED:
        raise self._return_value
    return result(self)
