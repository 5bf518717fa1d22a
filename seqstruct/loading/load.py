"""From a checkpoint of fairseq-train to a model that takes and gives text.

    m = seqstruct.load("runs/x/checkpoint_best.pt")
    m.translate(["Ein Hund schläft."], beam=5)

What it needs beside its parameters, dictionaries and the models of subwords, is looked for beside the checkpoint, then
in the folder of its training: a relative one from the working directory and from every folder above the checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from seqstruct.bridge.checkpoints import configuration_of, load_checkpoint, mapped
from seqstruct.bridge.quiet import quiet
from seqstruct.data.checked import META
from seqstruct.data.nli.folder import META as PAIRS_META
from seqstruct.data.nli.folder import VOCABULARY
from seqstruct.data.parsing.folder import FIELDS
from seqstruct.data.parsing.folder import META as CORPORA_META
from seqstruct.data.text.pipeline import BINARISED, INSIDE, TextPipeline, find_description, read_pipeline
from seqstruct.loading.base import TextModel
from seqstruct.loading.classify import Classifying
from seqstruct.loading.generate import Generating
from seqstruct.loading.parse import Parsing
from seqstruct.loading.predict_sentences import PredictingSentences
from seqstruct.loading.translate import Translating
from seqstruct.scoring.trained import load_model, register

PIECES = {  # of the tasks whose folders have more than dictionaries
    "text_classification": (META, "dict.txt"),
    "nli": (PAIRS_META, VOCABULARY),
    "babi_qa": (VOCABULARY,),
    "sentence_prediction": ("input0/dict.txt", "label/dict.txt"),
    "tree_transduction": (META, "dict.prefix.txt", "dict.infix.txt"),
    "joint_parsing": (CORPORA_META, *(f"dict.{field}.txt" for field in FIELDS)),
}
KINDS: tuple[type[TextModel], ...] = (Classifying, PredictingSentences, Parsing, Translating, Generating)
EMBEDDINGS = ("encoder_embed_path", "decoder_embed_path")  # files that a training begins with


def load(
    path: str | os.PathLike,
    data: str | os.PathLike | None = None,
    *,
    device: str | torch.device = "cpu",
    tokenized: bool = False,
) -> TextModel:
    """The model of a checkpoint, in eval mode on a device, with its text.

    data: the folder of `seqstruct prepare`, or the bin/ in it, if it is neither beside the checkpoint nor where
    training found it.  tokenized: whether text is tokens already, separated by spaces, as fairseq-interactive takes
    and gives them; then nothing but the dictionaries is needed.
    Raises FileNotFoundError without such a file; ValueError if it is no whole checkpoint, its task or model is not
    known, a piece is missing (what was looked for and where), or the device is none of this machine.
    """
    path = Path(path)
    if path.is_dir():
        found = [f", such as {file.name} in it" for file in sorted(path.glob("*.pt"))[:1]]
        raise ValueError(f"{path} is a folder: expected a checkpoint{''.join(found)}")
    device = _device(device)
    state = mapped(path) or load_checkpoint(path)
    configuration = _sections(path, state)
    task_options = configuration["task"]
    folder, languages = find_data(path, task_options, data)
    missing = [name for name in EMBEDDINGS if configuration["model"].get(name)]
    with quiet("fairseq"):
        model, task = load_model(path, folder, **dict.fromkeys(missing), **_chosen(task_options, languages))
    kind = next((kind for kind in KINDS if kind.fits(model, task)), None)
    if kind is None:
        raise ValueError(f"{path}: {type(model).__name__} of the task {task_options.get('_name')} is none of a "
                         "translation model, a language model, a classifier and a parser")
    pipelines = [TextPipeline()]
    if not tokenized:
        description = find_description([*([data] if data else [path.parent]), folder])
        pipelines = [read_pipeline(description.parent, language) for language in languages or [None]]
    return kind(path, model.to(device), task, device, (pipelines[0], pipelines[-1]))


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
                     "by data=)")


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
    beside = path.absolute().parent
    if not trained:
        return [beside]
    first = Path(str(trained).split(os.pathsep)[0])
    return [beside, first, *([] if first.is_absolute() else [folder / first for folder in beside.parents])]


def _device(name: str | torch.device) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().split("\n")[0].split(". ")[0]
        raise ValueError(f"device: expected one of this machine, got {str(name)!r}: {reason}") from None
    return device


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


def _chosen(task: Mapping[str, Any], languages: tuple[str, ...]) -> dict[str, Any]:
    """Overrides: the languages, and no files that a training begins with."""
    found = dict(zip(("source_lang", "target_lang"), languages, strict=False))
    return {**found, **({"pretrained_parser": ""} if "pretrained_parser" in task else {})}
