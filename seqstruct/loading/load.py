"""From a checkpoint of fairseq-train to a model that takes and gives text.

    m = seqstruct.load("runs/x/checkpoint_best.pt")
    m.translate(["Ein Hund schläft."], beam=5)

What it needs beside its parameters, dictionaries and the models of subwords, is looked for where
`seqstruct.scoring.trained_on` says.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch

from seqstruct.bridge.quiet import quiet
from seqstruct.data.text.pipeline import TextPipeline, find_description, read_pipeline
from seqstruct.loading.base import TextModel
from seqstruct.loading.classify import Classifying
from seqstruct.loading.generate import Generating
from seqstruct.loading.parse import Parsing
from seqstruct.loading.predict_sentences import PredictingSentences
from seqstruct.loading.translate import Translating
from seqstruct.scoring.trained import find_trained

KINDS: tuple[type[TextModel], ...] = (Classifying, PredictingSentences, Parsing, Translating, Generating)


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
    trained = find_trained(path, data)
    with quiet("fairseq"):
        model, task = trained.load()
    kind = next((kind for kind in KINDS if kind.fits(model, task)), None)
    if kind is None:
        raise ValueError(f"{path}: {type(model).__name__} of the task {trained.configuration['task'].get('_name')} is "
                         "none of a translation model, a language model, a classifier and a parser")
    pipelines = [TextPipeline()]
    if not tokenized:
        description = find_description([*([data] if data else [path.parent]), trained.folder])
        pipelines = [read_pipeline(description.parent, language) for language in trained.languages or [None]]
    return kind(path, model.to(device), task, device, (pipelines[0], pipelines[-1]))


def _device(name: str | torch.device) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().split("\n")[0].split(". ")[0]
        raise ValueError(f"device: expected one of this machine, got {str(name)!r}: {reason}") from None
    return device
