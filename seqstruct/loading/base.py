"""What a loaded model may be asked, and what all kinds share: text to dictionary ids, and batches of like lengths."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from seqstruct.data.text.pipeline import TextPipeline

BATCH = 32  # sentences
Text = str | Sequence[str]


class Parse(NamedTuple):
    """A parsed sentence; words count from 1, and 0 is the root.

    words: of n.  tags: of n, as the parser read them, or empty.  heads: of n, of the best projective tree; None where
    there is no parser of trees.  graphs: by formalism, (head, dependent, label) of each arc, by head, then dependent.
    brackets: a binary constituency tree, of language models that parse.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] = ()
    heads: tuple[int, ...] | None = None
    graphs: dict[str, list[tuple[int, int, str]]] = {}
    brackets: str | None = None


class TextModel(ABC):
    """A model that takes and gives text.

    A list of n texts gives a list of n results in the same order, a single text a single result.  batch_size:
    sentences calculated at once, which are of like lengths; results do not depend on it but for rounding, and for what
    sampling draws.
    All methods raise ValueError on an empty text, one that is longer than the model takes, what is no string, a batch
    size that is no whole number or below 1, and what the model cannot do.
    """

    name: ClassVar[str]
    abilities: ClassVar[tuple[str, ...]]

    def __init__(
        self, path: Path, model: Any, task: Any, device: torch.device, pipelines: tuple[TextPipeline, TextPipeline]
    ):
        """pipelines: of the text that goes in and of that which comes out."""
        self.path, self.model, self.task, self.device = path, model.eval(), task, device
        self.source, self.target = pipelines

    @classmethod
    @abstractmethod
    def fits(cls, model: Any, task: Any) -> bool:
        """Whether a model of fairseq is of this kind."""

    def translate(
        self, sentences: Text, beam: int = 5, *, batch_size: int = BATCH, seed: int = 1, **options: Any
    ) -> Any:
        """The best translation of each sentence by beam search, as fairseq-generate finds it.

        options: of fairseq-generate, by name: lenpen=0.6, max_len_b=50, sampling=True ...  seed: of what is drawn with
        sampling; torch's random state is left as it was.
        """
        raise self._cannot("translate")

    def score(self, texts: Any, translations: Text | None = None, *, batch_size: int = BATCH) -> Any:
        """Log-probabilities in nats.

        Of a translation model, log P(translation | sentence) with its end, a float for each pair; of a language model,
        log P(text), its end included, a float for each text; of a classifier, a dictionary of all labels for each text.
        """
        raise self._cannot("score")

    def generate(
        self, prefix: Text = "", beam: int = 1, *, batch_size: int = BATCH, seed: int = 1, **options: Any
    ) -> Any:
        """How a text goes on: prefix and continuation, up to the end of sentence or max_len_b=200 tokens in all, of
        which the prefix may not have more.

        beam: 1 takes the likeliest token each time.  options, seed: as of `translate`; sampling=True draws, from
        sampling_topk=10 tokens or the likeliest that have sampling_topp=0.9 of probability, at temperature=1.0.
        """
        raise self._cannot("generate")

    def classify(self, texts: Any, *, batch_size: int = BATCH) -> Any:
        """The likeliest label of each text, or of each pair of texts (first, second), by its name in the data."""
        raise self._cannot("classify")

    def parse(self, sentences: Any, *, batch_size: int = BATCH) -> Any:
        """A `Parse` of each sentence: words separated by spaces, a list of words, or an `AnnotatedSentence`.

        A parser that reads tags or lemmas takes those of an `AnnotatedSentence`; words alone are tagged by a hidden
        Markov model of its training sentences, and a lemma is the word's most frequent one there, or its lower case.
        """
        raise self._cannot("parse")

    def __deepcopy__(self, memo: dict[int, Any]) -> TextModel:
        """With parameters of its own; the task, which fairseq cannot copy, and the text's pipelines are shared."""
        memo[id(self)] = copied = copy.copy(self)
        vars(copied).pop("_scorer", None)  # which holds the model
        copied.model = copy.deepcopy(self.model, memo)
        return copied

    def _cannot(self, asked: str) -> ValueError:
        able = [name for name in self.abilities if name != asked]
        return ValueError(f"{self.path}: a {self.name} does not {asked}: ask {' or '.join(able)}")

    def _ids(
        self, tokens: Sequence[str], dictionary: Any, limit: int | None, place: str, empty: bool = False
    ) -> Tensor:
        """Dictionary ids of tokens, T long with the end of sentence.  Raises ValueError on none or too many."""
        ids = dictionary.encode_line(" ".join(tokens), add_if_not_exist=False).long()
        check_length(len(ids), limit, place, 1 if empty else 2)
        return ids

    def _moved(self, sample: Any) -> Any:
        from fairseq.utils import apply_to_sample

        return apply_to_sample(lambda tensor: tensor.to(self.device), sample)


def check_length(length: int, limit: int | None, place: str, least: int = 2) -> None:
    """Raise ValueError, naming the place, unless a number of tokens, the end of sentence among them, is possible."""
    if length < least:
        raise ValueError(f"{place} is empty")
    if limit is not None and length > limit:
        raise ValueError(f"{place} has {length} tokens with its end, and the model takes {limit} at most")


def as_list(
    texts: Any, single: tuple[type, ...] = (str,), inside: tuple[type, ...] = ()
) -> tuple[list[Any], bool]:
    """The texts as a list, and whether there was one alone.

    single: what a text may be, alone or in a list.  inside: what it may be in a list.
    Raises ValueError if they are no list or tuple of such texts.
    """
    if isinstance(texts, single):
        return [texts], True
    if not isinstance(texts, (list, tuple)):
        raise ValueError(f"expected a text or a list of texts, got {type(texts).__name__}")
    for number, text in enumerate(texts, 1):
        if not isinstance(text, single + inside):
            raise ValueError(f"text {number}: expected a string, got {type(text).__name__}")
    return list(texts), False
