"""Hypotheses of fairseq's search for sentences in text, for translation and for language models."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqstruct.loading.base import TextModel
from seqstruct.scoring.parsers import check_batch_size

WHOLE = {  # the least value of each
    "beam": 1, "min_len": 0, "max_len_b": 0, "no_repeat_ngram_size": 0, "sampling_topk": -1, "diverse_beam_groups": -1,
}
REAL: dict[str, tuple[str, Callable[[float], bool]]] = {
    "max_len_a": ("a finite number, 0 or more", lambda x: 0 <= x < math.inf),
    "lenpen": ("a finite number", math.isfinite),
    "unkpen": ("a number", lambda x: x > -math.inf),  # infinity leaves no unknown word
    "sampling_topp": ("a number from 0 to 1, or -1 for none", lambda x: 0 <= x <= 1 or x == -1),
    "temperature": ("a finite number above 0", lambda x: 0 < x < math.inf),
    "diverse_beam_strength": ("a finite number", math.isfinite),
    "diversity_rate": ("a finite number, 0 or more, or -1 for none", lambda x: 0 <= x < math.inf or x == -1),
}
FLAGS = ("match_source_len", "unnormalized", "sampling")
OPTIONS = tuple(name for name in (*WHOLE, *REAL, *FLAGS) if name != "beam")


def check_options(options: Mapping[str, Any], symbols: int) -> None:
    """Raise ValueError on an option that is none or has no such value; symbols: how many there are to choose from."""
    for name, value in options.items():
        if name in WHOLE:
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise ValueError(f"{name}: expected a whole number, got {value!r}")
            if value < WHOLE[name]:
                raise ValueError(f"{name}: expected {WHOLE[name]} or more, got {value}")
        elif name in REAL:
            expected, fits = REAL[name]
            if isinstance(value, bool) or not isinstance(value, Real) or not fits(float(value)):
                raise ValueError(f"{name}: expected {expected}, got {value!r}")
        elif name not in FLAGS:
            raise ValueError(f"expected options of {', '.join(OPTIONS)}, got {name!r}")
        elif value not in (True, False):
            raise ValueError(f"{name}: expected True or False, got {value!r}")
    if options.get("sampling_topk", -1) > symbols:
        raise ValueError(f"sampling_topk: expected at most the {symbols} symbols, got {options['sampling_topk']}")


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
