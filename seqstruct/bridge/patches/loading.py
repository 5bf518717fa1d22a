"""Loading checkpoints: each failure names the file and what is wrong with it, and what has changed since is told."""

from __future__ import annotations

import ast
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from fairseq import checkpoint_utils
from fairseq.file_io import PathManager
from fairseq.models import BaseFairseqModel
from fairseq.models.fairseq_model import FairseqMultiModel
from fairseq.trainer import Trainer
from torch import Tensor

from seqstruct.bridge import checkpoints
from seqstruct.bridge.earlier_plans import keep_meaning
from seqstruct.bridge.patches.dictionaries import check_ensemble
from seqstruct.bridge.patches.patch import patch
from seqstruct.bridge.swapped_attention import SWAPPED, changed, warn

logger = logging.getLogger(__name__)


@patch(checkpoint_utils, "load_checkpoint_to_cpu")
def load_checkpoint_to_cpu(
    load: Callable, path: str, arg_overrides: dict[str, Any] | None = None, *rest: Any, **named: Any
) -> Any:
    """A damaged or foreign file fails without its name, and plans of earlier versions would change their meaning."""
    try:
        state = load(path, arg_overrides, *rest, **named)
    except Exception as error:
        checkpoints.load_checkpoint(path)
        raise ValueError(f"{path}: not a fairseq checkpoint ({type(error).__name__}: {error})") from error
    checkpoints.check_entries(path, state)
    for change in keep_meaning(state, arg_overrides or ()):
        logger.warning("%s is of an earlier version: %s", path, change)
    return state


@patch(checkpoint_utils, "load_checkpoint")
def load_checkpoint(load: Callable, cfg: Any, trainer: Trainer, *rest: Any, **named: Any) -> Any:
    """Where the file of --restore-file is not there, a run starts anew without a word that is seen; overrides that are
    no dictionary end in a TypeError.
    """
    if not isinstance(ast.literal_eval(cfg.optimizer_overrides), dict):
        raise ValueError("--optimizer-overrides takes a Python dictionary, such as \"{'lr': [0.1]}\", not "
                         f"{cfg.optimizer_overrides}")
    path = cfg.restore_file
    if path != "checkpoint_last.pt" and not (trainer.checkpoint_suffix or PathManager.exists(path)):
        raise FileNotFoundError(f"--restore-file {path}: no such checkpoint")
    return load(cfg, trainer, *rest, **named)


@patch(checkpoint_utils, "load_model_ensemble_and_task")
def load_model_ensemble_and_task(
    load: Callable, filenames: Sequence[str], arg_overrides: dict | None = None, task: Any = None, *rest: Any,
    **named: Any,
) -> Any:
    """Models are loaded into whatever dictionaries the task has, another architecture fails without the file's name,
    and overrides swap attention without a word, or are no dictionary, which is told as a file that is none.
    """
    if not isinstance(arg_overrides, (Mapping, type(None))):
        raise ValueError("--model-overrides takes a Python dictionary, such as \"{'dropout': 0.0}\", not "
                         f"{arg_overrides}")
    check_ensemble(filenames, task)
    try:
        models, *loaded = load(filenames, arg_overrides, task, *rest, **named)
    except checkpoints.OtherArchitecture as error:
        raise ValueError(f"{' or '.join(map(str, filenames))}: {error}") from error
    if task is None:  # it is the checkpoint's, on the data that it is given
        check_ensemble(filenames, loaded[1])
    if not any(hasattr(model, SWAPPED) for model in models):
        for filename in map(str, filenames):
            if changes := changed(filename, arg_overrides or {}):
                warn(f"{filename} was trained with other attention ({'; '.join(changes)})", *models)
    return models, *loaded


@patch(Trainer, "load_checkpoint")
def load_for_training(load: Callable, self: Trainer, filename: str, *rest: Any, **named: Any) -> Any:
    """What a model says of a checkpoint is hidden behind an error that says nothing, and other attention with the same
    parameters goes on without a word.
    """
    try:
        extra_state = load(self, filename, *rest, **named)
    except Exception as error:
        if isinstance(error.__context__, checkpoints.OtherArchitecture):
            raise ValueError(f"{filename}: {error.__context__}") from error
        raise
    if self.is_data_parallel_master and (changes := changed(filename, self.cfg.model)):
        what = f"{filename} was trained with other attention ({'; '.join(changes)})"
        if hasattr(self.get_model(), SWAPPED):  # told of what starts from initial values, not of what was
            logger.warning("%s", what)
        else:
            warn(what, self.get_model())
    return extra_state


@patch(FairseqMultiModel, "load_state_dict")
@patch(BaseFairseqModel, "load_state_dict")
def load_state_dict(
    load: Callable, self: BaseFairseqModel, state_dict: dict[str, Tensor], *rest: Any, **named: Any
) -> Any:
    """Parameters of another architecture are listed by the page, or fail at the first that is looked for."""
    try:
        return load(self, state_dict, *rest, **named)
    except (RuntimeError, AttributeError):
        checkpoints.check_parameters(self.state_dict(), state_dict)
        raise
