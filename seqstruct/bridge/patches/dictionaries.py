"""Models and dictionaries that belong together: a digest of both dictionaries in every checkpoint, checked on loading.

fairseq loads a checkpoint into whatever dictionaries the task has, in training too, and an ensemble into those of the
first: where the sizes agree, each index then silently means another word.  Checkpoints of translation without digests
(of fairseq without this package) are compared by the dictionary files of the folder that they were trained on, as long
as those are there.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Callable, Sequence

from fairseq.data import Dictionary
from fairseq.data.data_utils import infer_language_pair
from fairseq.file_io import PathManager
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tasks.translation import TranslationTask
from fairseq.trainer import Trainer

from seqstruct.bridge.checkpoints import mapped
from seqstruct.bridge.patches.patch import patch

KEY = "seqstruct_dictionaries"
SIDES = ("source", "target")


def digest(symbols: Sequence[str]) -> str:
    """Hexadecimal SHA-256 of the symbols in their order; counts do not matter."""
    return hashlib.sha256("\n".join(symbols).encode()).hexdigest()


def symbols_of(task: Any) -> dict[str, Sequence[str]] | None:
    """Of source and target of a task of translation or language modeling, or of this package; None for other tasks."""
    if isinstance(task, (TranslationTask, LanguageModelingTask)):
        found = task.source_dictionary.symbols, task.target_dictionary.symbols
    else:
        found = getattr(task, "symbols", None)
    return None if found is None else dict(zip(SIDES, found, strict=True))


def digests(task: Any) -> dict[str, str] | None:
    """SHA-256 of the symbols of each side; None for tasks that have none."""
    found = symbols_of(task)
    return None if found is None else {side: digest(symbols) for side, symbols in found.items()}


@patch(Dictionary, "add_from_file")
def add_from_file(add: Callable, self: Dictionary, f: Any) -> None:
    """A damaged file fails without its name."""
    if not isinstance(f, str):
        return add(self, f)
    with open(PathManager.get_local_path(f), encoding="utf-8") as stream:
        try:
            return add(self, stream)
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"{f}: truncated or altered: {' '.join(str(error).split())}") from None


@patch(Trainer, "save_checkpoint")
def save_checkpoint(save: Callable, self: Trainer, filename: str, extra_state: dict[str, Any]) -> Any:
    """A checkpoint does not say of which words its indices are."""
    found = digests(self.task)
    return save(self, filename, extra_state if found is None else {**extra_state, KEY: found})


@patch(Trainer, "load_checkpoint")
def load_checkpoint(load: Callable, self: Trainer, filename: str, *rest: Any, **named: Any) -> Any:
    """A run goes on, and a model is tuned, over data of another dictionary without a word."""
    extra_state = load(self, filename, *rest, **named)
    _check_task(filename, mapped(filename), self.task)
    return extra_state


def check_ensemble(filenames: Sequence[str], task: Any) -> None:
    """Raise ValueError if the checkpoints, or a checkpoint and the task, have unlike dictionaries.

    What cannot be read is left to the loader to say.  Cost: the files are mapped, their tensors are not read.
    """
    first: tuple[str, dict[str, str]] | None = None
    for filename in map(str, filenames):
        state = mapped(filename)
        _check_task(filename, state, task)
        found = _recorded(state) or _of_folder(state)
        if found is None:
            continue
        if first is None:
            first = filename, found
        for side in SIDES:
            if found[side] != first[1][side]:
                raise ValueError(f"{first[0]} and {filename} have unlike {side} dictionaries: the models of an "
                                 "ensemble share both")


def _check_task(filename: str, state: dict[str, Any] | None, task: Any) -> None:
    symbols, recorded = symbols_of(task), _recorded(state)
    if state is None or symbols is None:
        return
    for side, part in zip(SIDES, ("encoder", "decoder"), strict=True):
        size = len(symbols[side])
        rows = (state.get("model") or {}).get(f"{part}.embed_tokens.weight")
        other = recorded is not None and recorded[side] != digest(symbols[side])
        fewer = recorded is None and isinstance(task, TranslationTask) and rows is not None and len(rows) != size
        if other or fewer:
            raise ValueError(f"{filename} was trained with another {side} dictionary than the data folder has "
                             f"({size} symbols there)")


def _recorded(state: dict[str, Any] | None) -> dict[str, str] | None:
    return ((state or {}).get("extra_state") or {}).get(KEY)


def _of_folder(state: dict[str, Any] | None) -> dict[str, str] | None:
    """Digests of the dictionary files where the checkpoint was trained, None if they are not there."""
    config = (state or {}).get("cfg")
    task = config.get("task") if isinstance(config, dict) else None
    if not isinstance(task, dict):
        return None
    folder = str(task.get("data")).split(":")[0]
    languages = task.get("source_lang"), task.get("target_lang")
    if None in languages:
        languages = infer_language_pair(folder) if Path(folder).is_dir() else (None, None)
    paths = [Path(folder, f"dict.{language}.txt") for language in languages]
    if not all(path.is_file() for path in paths):
        return None
    return {side: digest(Dictionary.load(str(path)).symbols) for side, path in zip(SIDES, paths, strict=True)}
