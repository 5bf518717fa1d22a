"""Annotated corpora as fairseq datasets: batches are drawn from the union of all corpora and sorted by corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqstruct.data.parsing.folder import FIELDS, entry_of
from seqstruct.data.parsing.sentence import AnnotatedSentence
from seqstruct.data.sized import SizedDataset
from seqstruct.data.text.binarise import word_number


class Dictionaries(NamedTuple):
    """Of words, lemmas and tags; the beginning-of-sentence symbol stands for the root."""

    words: Dictionary
    lemmas: Dictionary
    tags: Dictionary


class Example(NamedTuple):
    """One sentence.  index: in the union.  corpus: its name.  tokens: 3 n+1 long, the root first.  dropped: n+1 bool,
    words to be read as unknown in training.
    """

    index: int
    corpus: str
    tokens: Tensor
    sentence: AnnotatedSentence
    dropped: Tensor


class CorporaUnion(SizedDataset):
    """All sentences of several corpora, one after another.

    corpora: sentences by name.  labels: of the graphs and classes, by name.  word_dropout: alpha of Kiperwasser and
    Goldberg (2016): a word seen c times is `dropped` with probability alpha / (alpha + c); drawn anew for each
    epoch from the seed; 0 for none.  share_of_others: an epoch draws this share of the sentences of all corpora but the
    last, anew each time.
    """

    def __init__(
        self,
        corpora: Mapping[str, Sequence[AnnotatedSentence]],
        dictionaries: Dictionaries,
        labels: Mapping[str, Sequence[str]],
        *,
        word_dropout: float = 0.0,
        share_of_others: float = 1.0,
        seed: int = 1,
    ):
        super().__init__()
        self.dictionaries = dictionaries
        self.labels = {name: {label: i for i, label in enumerate(entries)} for name, entries in labels.items()}
        self.word_dropout = word_dropout
        self.share_of_others = share_of_others
        self.last = list(corpora)[-1]
        self.seed = seed
        self.epoch = 1
        self.entries = [(name, sentence) for name, sentences in corpora.items() for sentence in sentences]
        self.sizes = np.array([len(sentence.words) + 1 for _, sentence in self.entries], dtype=np.int64)
        self._tokens = [self._numbers(sentence) for _, sentence in self.entries]
        for name, sentence in self.entries:
            self._refuse_unknown(name, sentence)

    def _numbers(self, sentence: AnnotatedSentence) -> Tensor:
        rows = []
        for field, dictionary in zip(FIELDS, self.dictionaries, strict=True):
            values = getattr(sentence, field) or ("",) * len(sentence.words)
            found = [word_number(entry_of(value), dictionary) if value else dictionary.unk() for value in values]
            rows.append([dictionary.bos(), *found])
        return torch.tensor(rows)

    def _refuse_unknown(self, name: str, sentence: AnnotatedSentence) -> None:
        if sentence.label is not None and name in self.labels and sentence.label not in self.labels[name]:
            raise ValueError(
                f"{name}: expected a class of {', '.join(self.labels[name])}, got {sentence.label!r} for: "
                + " ".join(sentence.words)
            )
        for head, dependent, _ in sentence.arcs or ():
            if not (0 <= head <= len(sentence.words) and 1 <= dependent <= len(sentence.words)):
                raise ValueError(f"{name}: arc {head} -> {dependent} in a sentence of {len(sentence.words)} words")

    def __getitem__(self, index: int) -> Example:
        name, sentence = self.entries[index]
        tokens = self._tokens[index]
        dropped = np.zeros(tokens.size(1), bool)
        if self.word_dropout:
            generator = np.random.default_rng([self.seed, self.epoch, int(index)])
            counts = np.array([self.dictionaries.words.count[i] for i in tokens[0].tolist()])
            dropped = generator.random(len(counts)) < self.word_dropout / (self.word_dropout + counts)
            dropped[0] = False
        return Example(index, name, tokens, sentence, torch.from_numpy(dropped))

    def ordered_indices(self) -> np.ndarray:
        """By length; equal ones in an order drawn from seed and epoch, so that corpora mix within batches."""
        generator = np.random.default_rng([self.seed, self.epoch])
        shuffled = generator.permutation(len(self))
        if self.share_of_others < 1:
            others = np.array([name != self.last for name, _ in self.entries])[shuffled]
            shuffled = shuffled[~others | (generator.random(len(shuffled)) < self.share_of_others)]
        return shuffled[np.argsort(self.sizes[shuffled], kind="stable")]

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return False

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def collater(self, samples: Sequence[Example]) -> dict[str, Any]:
        """A batch for each corpus in `batches`, by name; `id` of all sentences in the order of those batches.

        Each has id B, tokens B 3 n+1 long (words, lemmas, tags; the root first), dropped B n+1 bool, padding_mask B n+1
        bool (True = padding, after the words) and what its sentences are annotated with: heads B n long, -1 at padding
        and where a sentence has no tree; arcs B n+1 n+1 long, the label's number or -1, [b, h, m] from head h to m; a
        label that training lacks is L, one past the last; classes B long.
        """
        if not samples:
            return {}
        batches = {}
        for name in dict.fromkeys(sample.corpus for sample in samples):
            batches[name] = self._batch(name, [sample for sample in samples if sample.corpus == name])
        return {
            "id": torch.cat([batch["id"] for batch in batches.values()]),
            "nsentences": len(samples),
            "ntokens": int(sum(self.sizes[sample.index] - 1 for sample in samples)),
            "net_input": {"batches": batches},
        }

    def _batch(self, name: str, samples: Sequence[Example]) -> dict[str, Tensor]:
        rows = pad_sequence([sample.tokens.T for sample in samples], True, self.dictionaries.words.pad())  # B N 3
        lengths = torch.tensor([sample.tokens.size(1) for sample in samples])
        batch = {
            "id": torch.tensor([sample.index for sample in samples]), "tokens": rows.transpose(1, 2).contiguous(),
            "padding_mask": torch.arange(rows.size(1)) >= lengths[:, None],
            "dropped": pad_sequence([sample.dropped for sample in samples], True),
        }
        sentences, known = [sample.sentence for sample in samples], self.labels.get(name)
        if any(sentence.heads is not None for sentence in sentences):
            heads = (sentence.heads or (-1,) * len(sentence.words) for sentence in sentences)
            batch["heads"] = pad_sequence([torch.tensor(row) for row in heads], True, -1)
        if known is not None and all(sentence.arcs is not None for sentence in sentences):
            batch["arcs"] = torch.full((*rows.shape[:2], rows.size(1)), -1)
            for b, sentence in enumerate(sentences):
                for head, dependent, label in sentence.arcs or ():
                    batch["arcs"][b, head, dependent] = known.get(label, len(known))
        if known is not None and all(sentence.label is not None for sentence in sentences):
            batch["classes"] = torch.tensor([known[str(sentence.label)] for sentence in sentences])
        return batch
