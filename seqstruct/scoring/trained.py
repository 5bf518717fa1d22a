"""Models of checkpoints, with the tasks that they were trained on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from seqstruct.bridge.checkpoints import configuration_of, load_checkpoint, mapped
from seqstruct.scoring.trained_on import find_data

EMBEDDINGS = ("encoder_embed_path", "decoder_embed_path")  # files that a training begins with


class Trained(NamedTuple):
    """A checkpoint of fairseq-train, its options by section, its data folder, and source and target of translations."""

    path: Path
    configuration: Mapping[str, Mapping[str, Any]]
    folder: Path
    languages: tuple[str, ...]

    @property
    def overrides(self) -> dict[str, Any]:
        """What takes the place of training's options: the folder, the languages, and no file that a training begins
        with."""
        task, model = self.configuration["task"], self.configuration["model"]
        return {
            "data": os.fspath(self.folder),
            **dict(zip(("source_lang", "target_lang"), self.languages, strict=False)),
            **({"pretrained_parser": ""} if "pretrained_parser" in task else {}),
            **dict.fromkeys(name for name in EMBEDDINGS if model.get(name)),
        }

    def load(self, **overrides: Any) -> tuple[Any, Any]:
        """The model, in eval mode, and its task."""
        from fairseq import checkpoint_utils

        merged = {**self.overrides, **overrides}
        (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([os.fspath(self.path)], merged)
        model.eval()
        return model, task


def find_trained(path: str | os.PathLike, data: str | os.PathLike | None = None) -> Trained:
    """What a checkpoint was trained on, with the data where it is now.

    data: the folder of `seqstruct prepare`, or the bin/ in it, if it is neither beside the checkpoint nor where
    training found it.
    Raises FileNotFoundError without such a checkpoint; ValueError if it is no whole one, its task or model is not
    known, or its data is not found (what was looked for and where).
    """
    path = Path(path)
    configuration = _sections(path, mapped(path) or load_checkpoint(path))
    return Trained(path, configuration, *find_data(path, configuration["task"], data))


def load_model(path: str | os.PathLike, data: str | os.PathLike | None = None, **overrides: Any) -> tuple[Any, Any]:
    """The model of a checkpoint of fairseq-train, in eval mode, and its task.

    data: as of `find_trained`.  overrides: options that take the place of training's.  Raises what `find_trained` does.
    """
    return find_trained(path, data).load(**overrides)


def first_symbol(task: Any) -> int:
    """What decoding of a language model's task begins with: the end of a text, as fairseq has it, or the beginning that
    the option --add-bos-token and this package's own data ask for."""
    return symbols_before(task)[0]


def symbols_before(task: Any) -> tuple[int, ...]:
    """What stands before a text in training: with --add-bos-token the beginning of one before fairseq's end."""
    from seqstruct.tasks.folder_task import FolderTask

    options, symbols = getattr(task, "args", None) or task.cfg, task.source_dictionary
    if isinstance(task, FolderTask):
        return (symbols.bos(),)
    return (symbols.bos(), symbols.eos()) if getattr(options, "add_bos_token", False) else (symbols.eos(),)


def register() -> None:
    """Make models, tasks and criterions known to fairseq, as --user-dir does in a fresh process."""
    import seqstruct.models
    import seqstruct.tasks  # noqa: F401


def _sections(path: Path, state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of task and model.  Raises ValueError if there are none, or fairseq knows no such task or model."""
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    register()
    found = configuration_of(state)
    if not found:
        raise ValueError(f"{path}: not a checkpoint of fairseq-train: it has no configuration, cfg or args")
    for name, known in (("task", TASK_REGISTRY), ("model", {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY})):
        chosen = found.get(name, {}).get("_name")
        if chosen not in known:
            raise ValueError(f"{path}: the {name} {chosen!r} is not known to fairseq; where a plugin "
                             "registers it, import that first")
    return found
