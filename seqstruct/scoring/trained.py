"""Models of checkpoints, with the tasks that they were trained on."""

from __future__ import annotations

import os
from typing import Any


def load_model(path: str | os.PathLike, data: str | os.PathLike | None = None, **overrides: Any) -> tuple[Any, Any]:
    """The model of a checkpoint of fairseq-train, in eval mode, and its task.

    data: the data folder, if it is not where training found it.  overrides: options that take the place of training's.
    Raises OSError if there is no such file, ValueError if it is no whole checkpoint.
    """
    from fairseq import checkpoint_utils

    register()
    moved = {} if data is None else {"data": os.fspath(data)}
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([os.fspath(path)], {**overrides, **moved})
    model.eval()
    return model, task


def register() -> None:
    """Make models, tasks and criterions known to fairseq, as --user-dir does in a fresh process."""
    import seqstruct.models
    import seqstruct.tasks  # noqa: F401
