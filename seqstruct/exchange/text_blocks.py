"""Texts as blocks of token ids for language models of transformers, and what is measured on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from seqstruct.benchmarks.timing import turns
from seqstruct.data.text.aligned import read_lines

STEPS = 16  # of decoding that are timed


def blocks(tokenizer: PreTrainedTokenizerBase, path: str | Path, length: int) -> Tensor:
    """N length long: the lines of a text in a row, as the tokenizer ends them; a rest that fills no block is left out.

    Raises ValueError if the text has less than one block, or is not UTF-8.
    """
    lines = list(read_lines(path))
    ids = torch.tensor([token for line in tokenizer(lines)["input_ids"] for token in line], dtype=torch.long)
    if len(ids) < length:
        raise ValueError(f"{path}: expected a text of {length} tokens or more, got {len(ids)}")
    return ids[: len(ids) // length * length].view(-1, length)


def batches(
    text: Tensor, size: int, updates: int, seed: int, what: str, labels: bool = True
) -> Iterator[dict[str, Tensor]]:
    """So many batches of blocks, each epoch in an order of its own, as arguments of a model.

    what: said beside a bar of those used so far, which a terminal shows.
    """
    generator, order = torch.Generator().manual_seed(seed), torch.zeros(0, dtype=torch.long)
    console = Console(stderr=True)
    for _ in track(range(updates), what, console=console, transient=True, disable=not console.is_terminal):
        while len(order) < size:
            order = torch.cat([order, torch.randperm(len(text), generator=generator)])
        chosen, order = text[order[:size]], order[size:]
        yield {"input_ids": chosen, "labels": chosen} if labels else {"input_ids": chosen}


@torch.no_grad()
def perplexity(model: Any, text: Tensor, size: int) -> float:
    """Of a token of the blocks, each but the first in its block predicted from those before it in there."""
    training, total = model.training, 0.0
    model.eval()
    for chosen in text.split(size):
        total += float(model(input_ids=chosen, labels=chosen, use_cache=False).loss) * len(chosen)
    model.train(training)
    return math.exp(total / len(text))


@torch.no_grad()
def milliseconds(models: dict[str, Any], length: int, size: int) -> dict[str, float]:
    """The median time of a decoding step after so many tokens, for `size` texts at once; models take turns."""
    steps, tokens = {}, torch.zeros(size, length, dtype=torch.long)
    for name, model in models.items():
        cache = model.eval()(input_ids=tokens, use_cache=True, logits_to_keep=1).past_key_values
        steps[name] = partial(model, input_ids=tokens[:, :1], past_key_values=cache, use_cache=True)
    return turns(steps, STEPS, warm_up=0)
