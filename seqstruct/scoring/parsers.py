"""Parsers: trained language models that have `splits`, fixed ways of branching, and trained dependency parsers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from seqstruct.data.parsing.sentence import AnnotatedSentence
from seqstruct.ops.trees import Split, left_branching, random_branching, right_branching
from seqstruct.scoring.trained import load_model, register

Parser = Callable[[Sequence[str]], list[Split]]
DependencyParser = Callable[[Sequence[AnnotatedSentence]], list[list[int]]]
BRANCHING = ("left", "right", "random")
BATCH = 32  # sentences parsed at a time, of like lengths


def branching_parser(kind: str, seed: int) -> Parser:
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
            tokens = torch.tensor([dictionary.index(word) for word in words], dtype=torch.long)
            return decoder.splits(tokens.to(next(model.parameters()).device), add_left)

    return parse


def load_parser(path: str | os.PathLike, data: str | os.PathLike | None = None, add_left: bool = False) -> Parser:
    """The parser of a checkpoint.  data: the prepared folder or the bin/ in it, which is searched for if None.

    Raises OSError or ValueError if the checkpoint cannot be read or is of no parser.
    """
    model, task = load_model(path, data)
    return model_parser(model, task.source_dictionary, add_left)


def untrained_parser(config: Any, seed: int, add_left: bool) -> Parser:
    """A model as fairseq-train would begin with.

    config: of a training, as `training_config` makes it.  seed: of the parameters.
    torch's random state is left as it was.  Raises ValueError if the config has no task or no model, or the model is no
    parser.
    """
    from fairseq import tasks

    if missing := [section for section in ("task", "model") if config.get(section) is None]:
        raise ValueError(f"expected a config with a task and a model, got no {missing[0]}")
    task = tasks.setup_task(config.task)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = task.build_model(config.model)
    return model_parser(model, task.source_dictionary, add_left)


def training_config(options: Sequence[str]) -> Any:
    """What fairseq-train makes of a data folder and options.

    On options that fairseq does not know the process ends, as fairseq-train does.  Raises ValueError if --arch is not
    among them.
    """
    from fairseq import options as fairseq_options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    register()
    parser = fairseq_options.get_training_parser()
    try:
        return convert_namespace_to_omegaconf(fairseq_options.parse_args_and_arch(parser, list(options)))
    except RuntimeError:  # of fairseq, without a word
        raise ValueError(f"expected a folder and options of fairseq-train, --arch among them, got {options}") from None


def load_dependency_parser(path: str | os.PathLike, data: str | os.PathLike | None = None) -> DependencyParser:
    """The parser of trees in a `joint_parser`'s checkpoint: sentences to the heads of their words, 0 the root.

    data: the folder of `seqstruct prepare parsing`, which is searched for if None.
    Raises OSError or ValueError if the checkpoint cannot be read or has no parser of trees; the parser, if a sentence
    has no tags, or lemmas, and the model reads them.
    """
    from seqstruct.data.parsing.folder import FIELDS

    model, task = load_model(path, data)
    encoder = getattr(model, "tree_encoder", None)
    if encoder is None:
        raise ValueError(f"{path}: expected a joint_parser with a parser of trees, got {type(model).__name__}")
    needed = [field for field, embedding in zip(FIELDS, encoder.embeddings, strict=True) if embedding is not None]

    def parse(sentences: Sequence[AnnotatedSentence]) -> list[list[int]]:
        for sentence in sentences:
            for field in needed:
                if not getattr(sentence, field):
                    raise ValueError(f"{path} reads {field}, and there are none for: " + " ".join(sentence.words))
        return [heads.tolist() for heads in predictions(model, task, sentences, "trees")]

    return parse


@torch.no_grad()
def predictions(
    model: Any, task: Any, sentences: Sequence[AnnotatedSentence], kind: str, name: str = "", batch_size: int = BATCH
) -> list[Tensor]:
    """What a `joint_parser` predicts for each sentence of n words, in their order, on the CPU.

    kind: "trees", heads n long, 0 the root; "graphs", labels n+1 n+1 long of the arcs from row to column, -1 where
    there is none; "classes", a number.  name: of the corpus, for graphs and classes.
    """
    from seqstruct.data.parsing.dataset import CorporaUnion

    if not sentences:
        return []
    device = next(model.parameters()).device
    corpus = CorporaUnion({kind: sentences}, task.dictionaries, {})
    found: dict[int, Tensor] = {}
    for chosen in batches(corpus.sizes.tolist(), batch_size):
        batch = corpus.collater([corpus[i] for i in chosen])["net_input"]["batches"][kind]
        tokens, padding_mask = batch["tokens"].to(device), batch["padding_mask"].to(device)
        if kind == "trees":
            output = model.parse_trees(tokens, padding_mask)
        else:
            output = model({name: {"tokens": tokens, "padding_mask": padding_mask}})[name]
        for row, index in zip(model.best(name, output, padding_mask).cpu(), chosen, strict=True):
            size = corpus.size(index)
            found[index] = row[: size - 1] if kind == "trees" else row[:size, :size] if kind == "graphs" else row
    return [found[index] for index in range(len(sentences))]


def check_batch_size(batch_size: int) -> None:
    """Raise ValueError unless it is a whole number, 1 or more."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, Integral):
        raise ValueError(f"batch_size: expected a whole number, got {batch_size!r}")
    if batch_size < 1:
        raise ValueError(f"batch_size: expected 1 or more, got {batch_size}")


def batches(sizes: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Indices in batches of like sizes.  Raises ValueError as `check_batch_size`."""
    check_batch_size(batch_size)
    order = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
