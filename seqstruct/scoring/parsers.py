"""Parsers to be scored: trained language models that have `splits`, and fixed ways of branching."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from seqstruct.ops.span_parsing import Split, left_branching, random_branching, right_branching

Parser = Callable[[Sequence[str]], list[Split]]
BRANCHING = ("left", "right", "random")


def branching_parser(kind: str, seed: int = 1) -> Parser:
    """Left, right, or random branching, the random one drawn anew for each sentence.

    Raises ValueError on another kind.
    """
    if kind not in BRANCHING:
        raise ValueError(f"expected branching of {', '.join(BRANCHING)}, got {kind!r}")
    if kind == "random":
        generator = torch.Generator().manual_seed(seed)
        return lambda words: random_branching(len(words), generator)
    tree = left_branching if kind == "left" else right_branching
    return lambda words: tree(len(words))


def model_parser(model: Any, dictionary: Any, add_left: bool = False) -> Parser:
    """The trees of a model with a decoder that has `splits`; words that the dictionary lacks are its unknown word.

    add_left: the left span's score counts too, where spans have scores.  Raises ValueError on another model.
    """
    decoder = getattr(model, "decoder", None)
    if not hasattr(decoder, "splits"):
        raise ValueError(f"{type(model).__name__} is no parser: expected a model as palm, on_lstm or prpn")
    model.eval()

    def parse(words: Sequence[str]) -> list[Split]:
        with torch.no_grad():
            return decoder.splits(torch.tensor([dictionary.index(word) for word in words], dtype=torch.long), add_left)

    return parse


def load_parser(path: str | os.PathLike, data: str | os.PathLike | None = None, add_left: bool = False) -> Parser:
    """The parser of a checkpoint.  data: the binarised folder, if it is not where training found it.

    Raises OSError or ValueError if the checkpoint cannot be read or is of no parser.
    """
    from fairseq import checkpoint_utils

    import seqstruct.models
    import seqstruct.tasks  # noqa: F401  registers them, as --user-dir does
    from seqstruct.bridge.checkpoints import load_checkpoint

    load_checkpoint(path)  # refuses what is no checkpoint by a sentence
    overrides = {} if data is None else {"data": os.fspath(data)}
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([os.fspath(path)], arg_overrides=overrides)
    return model_parser(models[0], task.source_dictionary, add_left)


def untrained_parser(options: Sequence[str], seed: int, add_left: bool = False) -> Parser:
    """A model as fairseq-train would begin with; options: its data folder and its options.

    seed: of the parameters.  torch's random state is left as it was.  Raises ValueError if the model is no parser; on
    options that fairseq does not know the process ends, as fairseq-train does.
    """
    from fairseq import options as fairseq_options
    from fairseq import tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    import seqstruct.models
    import seqstruct.tasks  # noqa: F401  registers them, as --user-dir does

    parser = fairseq_options.get_training_parser()
    cfg = convert_namespace_to_omegaconf(fairseq_options.parse_args_and_arch(parser, list(options)))
    task = tasks.setup_task(cfg.task)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = task.build_model(cfg.model)
    return model_parser(model, task.source_dictionary, add_left)
