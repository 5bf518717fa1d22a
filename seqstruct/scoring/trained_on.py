"""The data that a checkpoint was trained on: where it is now.

It is looked for beside the checkpoint, then in the folder of its training: a relative one from the working directory
and from every folder above the checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from seqstruct.data.checked import META
from seqstruct.data.nli.folder import META as PAIRS_META
from seqstruct.data.nli.folder import VOCABULARY
from seqstruct.data.parsing.folder import DICTIONARIES
from seqstruct.data.parsing.folder import META as CORPORA_META
from seqstruct.data.text.pipeline import BINARISED, INSIDE, find_description

PIECES = {  # of the tasks whose folders have more than dictionaries
    "cfl_language_modeling": (META, "dict.txt"),
    "recognition": (META, "dict.txt"),
    "symbol_tagging": (META, "dict.txt"),
    "text_classification": (META, "dict.txt"),
    "nli": (PAIRS_META, VOCABULARY),
    "babi_qa": (VOCABULARY,),
    "sentence_prediction": ("input0/dict.txt", "label/dict.txt"),
    "tree_transduction": (META, "dict.prefix.txt", "dict.infix.txt"),
    "joint_parsing": (CORPORA_META, *DICTIONARIES),
}


def find_data(
    path: Path, task: Mapping[str, Any], data: str | os.PathLike | None
) -> tuple[Path, tuple[str, ...]]:
    """The folder with what the task reads: `data`, or bin/ in it, or where the module's docstring says; and source and
    target language of translations.

    Raises ValueError that says what is missing and where it was looked for.
    """
    tried, needed = [], ("dict.txt",)
    for place in [Path(data)] if data is not None else _places(path, task.get("data")):
        for folder in (place, *(place / name for name in INSIDE), place / BINARISED / "0"):
            languages = _languages(task, folder)
            needed = pieces(task, languages)
            if all((folder / name).is_file() for name in needed):
                return folder, languages
        tried.append(str(place))
    raise ValueError(f"{path} needs {' and '.join(needed)}: looked for in {', '.join(dict.fromkeys(tried))} (say where "
                     "by --data, in Python by data=)")


def pieces(task: Mapping[str, Any], languages: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the files that a task reads before any data."""
    if languages:
        return tuple(f"dict.{language}.txt" for language in languages)
    return PIECES.get(str(task.get("_name")), ("dict.txt",))


def _languages(task: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """Source and target: those of training, or, where it took them from the folder, as the folder has them."""
    if "source_lang" not in task:
        return ()
    found = (task["source_lang"], task["target_lang"])
    if not all(found):
        with suppress(ValueError, OSError, KeyError):
            described = json.loads(find_description([folder]).read_text(encoding="utf-8"))
            return tuple(described["options"]["languages"])
        names = (path.name.split(".") for path in sorted(folder.glob("*.*-*.*.bin")))
        found = next((tuple(parts[1].split("-")) for parts in names if len(parts) == 4), ("SOURCE", "TARGET"))
    return found


def _places(path: Path, trained: str | None) -> list[Path]:
    """Where the data of a checkpoint may be, the likeliest first.  trained: the folder that training was given."""
    beside = path.absolute().parent
    if not trained:
        return [beside]
    first = Path(str(trained).split(os.pathsep)[0])
    return [beside, first, *([] if first.is_absolute() else [folder / first for folder in beside.parents])]
