"""Hypotheses of fairseq's search for sentences in text, for translation and for language models."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seqstruct.loading.base import TextModel
from seqstruct.scoring.parsers import batches

OPTIONS = (
    "min_len", "max_len_a", "max_len_b", "match_source_len", "unnormalized", "lenpen", "unkpen", "no_repeat_ngram_size",
    "sampling", "sampling_topk", "sampling_topp", "temperature", "diverse_beam_groups", "diverse_beam_strength",
    "diversity_rate",
)  # fmt: skip


def build_generator(loaded: TextModel, beam: int, options: dict[str, Any]) -> Any:
    """fairseq's generator as the task builds it.  Raises ValueError on an option that is none, or does not fit."""
    from fairseq.dataclass.configs import GenerationConfig

    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise ValueError(f"expected options of {', '.join(OPTIONS)}, got {unknown[0]!r}")
    if beam < 1:
        raise ValueError(f"beam: expected 1 or more, got {beam}")
    arguments = argparse.Namespace(**{**vars(GenerationConfig()), "beam": beam, "nbest": 1, **options})
    try:
        return loaded.task.build_generator([loaded.model], arguments)
    except AssertionError as error:
        raise ValueError(str(error)) from None


def best(
    loaded: TextModel, sources: Sequence[Tensor], beam: int, batch_size: int, seed: int, options: dict[str, Any]
) -> list[list[str]]:
    """The symbols of the best hypothesis of each source, ids T long; a language model's begins with its prefix."""
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
        for chosen in batches(lengths, batch_size):
            sample = loaded._moved(dataset.collater([dataset[index] for index in chosen]))
            hypotheses = task.inference_step(generator, [loaded.model], sample)
            for index, ranked in zip(sample["id"].tolist(), hypotheses, strict=True):
                tokens = ranked[0]["tokens"].tolist() if ranked else []
                found[index] = [dictionary[token] for token in tokens if token not in left_out]
    return [found[index] for index in range(len(sources))]
