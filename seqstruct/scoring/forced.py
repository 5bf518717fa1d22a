"""Forced scoring: the log-probability that a translation model, or an ensemble, gives to a translation at hand.

An ensemble predicts each symbol with the mean of its models' probabilities, as in fairseq's beam search and
`fairseq-generate --score-reference`, whose sums these are (there divided by the length, and in bits).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqstruct.data.text.subwords import load_bpe, load_sentencepiece
from seqstruct.scoring.trained import find_trained

MAX_TOKENS = 6000


class EncodedPair(NamedTuple):
    """Indices (S,) of a source and (T,) of a target, each with the end of sentence last, but for sources of a task
    whose `source_ends` says that they have none; symbols unknown in both."""

    source: Tensor
    target: Tensor
    unknown: int


class TooLong(ValueError):
    """A sentence beyond the models' limit."""


class ForcedScorer:
    """Scores pairs of sentences, given as words or subwords separated by spaces."""

    def __init__(
        self, models: Sequence[Any], task: Any, segment: Callable[[str], str] | None = None,
        device: torch.device | str = "cpu",
    ):
        """models: of one task, whose dictionaries are looked up.  segment: cuts both sides into subwords first.

        Raises ValueError if the models are no encoder-decoders.
        """
        from fairseq import utils
        from fairseq.models import FairseqEncoderDecoderModel

        for model in models:
            if not isinstance(model, FairseqEncoderDecoderModel):
                raise ValueError(f"expected a translation model, got {type(model).__name__}")
        self.models = [model.to(device).eval() for model in models]
        self.source, self.target = task.source_dictionary, task.target_dictionary
        self.left_pad_source = getattr(task.cfg, "left_pad_source", False)
        self.source_ends = getattr(task, "source_ends", True)
        self.segment, self.device = segment or str.strip, torch.device(device)
        limits = utils.resolve_max_positions(task.max_positions(), *(model.max_positions() for model in models))
        self.limits = limits if isinstance(limits, tuple) else (limits, limits)

    def encode(self, source: str, target: str) -> EncodedPair:
        """Look both sides up; words that a dictionary lacks are its unknown word.

        Raises ValueError if a side is empty, TooLong if it is beyond the models' limit.
        """
        sides, unknown = [], 0
        for name, text, dictionary, limit in zip(
            ("source", "target"), (source, target), (self.source, self.target), self.limits, strict=True
        ):
            line = self.segment(text)
            found = dictionary.encode_line(line, add_if_not_exist=False).long()
            if len(found) == 1:
                raise ValueError(f"the {name} is empty")
            if len(found) > limit:
                raise TooLong(f"the {name} has {len(found)} symbols with its end, more than the limit of {limit}")
            unknown += int((found == dictionary.unk()).sum())
            sides.append(found if name == "target" or self.source_ends else found[:-1])
        return EncodedPair(*sides, unknown)

    def log_probabilities(self, pairs: Sequence[EncodedPair], max_tokens: int = MAX_TOKENS) -> list[float]:
        """log P(target | source), in nats, its end of sentence included; in the order of the pairs.

        max_tokens: of one batch, padding included, of pairs of like length; it changes nothing but speed and memory.
        """
        found = [0.0] * len(pairs)
        for batch in batches([(len(pair.source), len(pair.target)) for pair in pairs], max_tokens):
            for index, score in zip(batch, self._batch([pairs[i] for i in batch]).tolist(), strict=True):
                found[index] = score
        return found

    def _batch(self, pairs: Sequence[EncodedPair]) -> Tensor:
        from fairseq.data.data_utils import collate_tokens

        pad, eos = self.target.pad(), self.target.eos()
        source = collate_tokens([pair.source for pair in pairs], self.source.pad(), left_pad=self.left_pad_source)
        target = collate_tokens([pair.target for pair in pairs], pad)
        before = collate_tokens([pair.target for pair in pairs], pad, eos, move_eos_to_beginning=True)
        lengths = torch.tensor([len(pair.source) for pair in pairs])
        source, target, before, lengths = (x.to(self.device) for x in (source, target, before, lengths))
        sample = {"target": target}
        found = []
        with torch.inference_mode():
            for model in self.models:
                output = model(src_tokens=source, src_lengths=lengths, prev_output_tokens=before)
                log_probs = model.get_normalized_probs(output, log_probs=True, sample=sample)
                found.append(log_probs.gather(2, target[..., None])[..., 0])  # B T
            log_probs = torch.stack(found).logsumexp(0) - math.log(len(found)) if len(found) > 1 else found[0]
            return log_probs.masked_fill(target == pad, 0.0).double().sum(1)


def batches(lengths: Sequence[tuple[int, int]], max_tokens: int) -> list[list[int]]:
    """Indices of pairs of lengths, those of like length together, each batch of at most max_tokens with its padding.

    A pair that is longer than that is a batch of its own.  In a batch the longest source is first, as fairseq's LSTM
    wants it.
    """
    from fairseq.data.data_utils import batch_by_size

    order = np.array(sorted(range(len(lengths)), key=lambda i: lengths[i]), dtype=np.int64)
    found = batch_by_size(order, lambda i: min(max(lengths[i]), max_tokens), max_tokens=max_tokens)
    return [batch.tolist()[::-1] for batch in found]


def load_segmentation(path: str | os.PathLike) -> Callable[[str], str]:
    """The function of a codes file of subword-nmt or a SentencePiece model.  Raises OSError or ValueError."""
    with open(path, "rb") as stream:
        start = stream.read(9)
    if start.startswith(b"#version:"):
        return load_bpe(path)
    try:
        return load_sentencepiece(path)
    except (RuntimeError, OSError):
        raise ValueError(f"{path}: neither codes of subword-nmt nor a SentencePiece model") from None


def load_scorer(
    checkpoints: Sequence[str | os.PathLike],
    data: str | os.PathLike | None = None,
    segmentation: str | os.PathLike | None = None,
    cpu: bool = False,
) -> ForcedScorer:
    """The scorer of one checkpoint or of several as an ensemble, on a GPU if there is one, unless cpu.

    data: as of `find_trained`, of the first; all read its dictionaries.  segmentation: a codes file of subword-nmt or
    a SentencePiece model for text in whole words.
    Raises OSError or ValueError if a checkpoint cannot be read, is of no translation model, or the models of an
    ensemble have unlike dictionaries.
    """
    from fairseq import checkpoint_utils, tasks

    segment = None if segmentation is None else load_segmentation(segmentation)
    paths = [os.fspath(path) for path in checkpoints]
    trained = [find_trained(paths[0], data)]
    trained += [find_trained(path, trained[0].folder) for path in paths[1:]]
    overrides = {name: value for one in trained for name, value in one.overrides.items()}
    task = tasks.setup_task(checkpoint_utils.load_checkpoint_to_cpu(paths[0], overrides)["cfg"].task)
    models, _, _ = checkpoint_utils.load_model_ensemble_and_task(paths, overrides, task)
    if getattr(task, "source_dictionary", None) is None or getattr(task, "target_dictionary", None) is None:
        raise ValueError(f"{paths[0]}: expected a translation model")
    device = "cuda" if torch.cuda.is_available() and not cpu else "cpu"
    return ForcedScorer(models, task, segment, device)
