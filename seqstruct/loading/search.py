"""Hypotheses of fairseq's search for sentences in text, for translation and for language models."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqstruct.bridge.search_options import REAL, WHOLE, check_numbers
from seqstruct.loading.base import TextModel
from seqstruct.scoring.parsers import check_batch_size

FLAGS = ("match_source_len", "unnormalized", "sampling")
OPTIONS = tuple(name for name in (*WHOLE, *REAL, *FLAGS) if name != "beam")


def check_options(options: Mapping[str, Any], symbols: int) -> None:
    """Raise ValueError on an option that is none or has no such value; symbols: how many there are to choose from."""
    for name, value in options.items():
        if name in FLAGS:
            if value not in (True, False):
                raise ValueError(f"{name}: expected True or False, got {value!r}")
        elif name not in WHOLE and name not in REAL:
            raise ValueError(f"expected options of {', '.join(OPTIONS)}, got {name!r}")
    check_numbers(options, symbols)


def build_generator(loaded: TextModel, beam: int, options: dict[str, Any]) -> Any:
    """fairseq's generator as the task builds it.  Raises ValueError on an option that is none, or does not fit."""
    from fairseq.dataclass.configs import GenerationConfig

    check_options({"beam": beam, **options}, len(loaded.task.target_dictionary))
    arguments = argparse.Namespace(**{**vars(GenerationConfig()), "beam": beam, "nbest": 1, **options})
    try:
        return loaded.task.build_generator([loaded.model], arguments)
    except AssertionError as error:
        raise ValueError(str(error)) from None


def best(
    loaded: TextModel, sources: Sequence[Tensor], beam: int, batch_size: int, seed: int, options: dict[str, Any]
) -> list[list[str]]:
    """The symbols of the best hypothesis of each source, ids T long; a language model's begins with its prefix."""
    check_batch_size(batch_size)
    generator = build_generator(loaded, beam, options)
    task, dictionary = loaded.task, loaded.task.target_dictionary
    left_out = {dictionary.bos(), dictionary.pad(), dictionary.eos()}
    lengths = [len(source) for source in sources]
    dataset = task.build_dataset_for_inference(list(sources), torch.tensor(lengths)) if sources else []
    found: dict[int, list[str]] = {}
    devices = [loaded.device] if loaded.device.type == "cuda" else []
    with torch.random.fork_rng(devices, enabled=bool(options.get("sampling"))):
        if options.get("sampling"):
            torch.manual_seed(seed)
        order = np.argsort(lengths, kind="stable")
        for chosen in dataset.batch_by_size(order, max_sentences=batch_size) if sources else ():
            sample = loaded._moved(dataset.collater([dataset[int(index)] for index in chosen]))
            try:
                hypotheses = task.inference_step(generator, [loaded.model], sample)
            except AssertionError as error:
                if not str(error).startswith("min_len"):
                    raise
                raise ValueError("min_len: expected at most the length that max_len_a, max_len_b and the model allow, "
                                 f"got {options.get('min_len', 1)}") from None
            for index, ranked in zip(sample["id"].tolist(), hypotheses, strict=True):
                tokens = ranked[0]["tokens"].tolist() if ranked else []
                found[index] = [dictionary[token] for token in tokens if token not in left_out]
    return [found[index] for index in range(len(sources))]
