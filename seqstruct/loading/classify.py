"""Classifiers of texts, or of pairs of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seqstruct.data.nli.dataset import PairsDataset
from seqstruct.data.nli.read import SentencePair
from seqstruct.data.text_classification.dataset import TextClassificationDataset
from seqstruct.loading.base import BATCH, TextModel, as_list, check_length
from seqstruct.scoring.parsers import batches
from seqstruct.tasks.nli import NLITask
from seqstruct.tasks.text_classification import TextClassificationTask


class Classifying(TextModel):
    """Text in, a label out."""

    name, abilities = "classifier", ("classify", "score")

    @classmethod
    def fits(cls, model: Any, task: Any) -> bool:
        """The tasks text_classification and nli."""
        return isinstance(task, (NLITask, TextClassificationTask))

    @property
    def labels(self) -> list[str]:
        """The labels by name, in the order of the logits."""
        return list(self.task.labels)

    @property
    def pairs(self) -> bool:
        """Whether labels are of pairs of texts."""
        return isinstance(self.task, NLITask) or self.task.pairs

    def classify(self, texts: Any, *, batch_size: int = BATCH) -> Any:
        logits, alone = self._logits(texts, batch_size)
        found = [self.labels[index] for index in logits.argmax(1).tolist()]
        return found[0] if alone else found

    def score(self, texts: Any, translations: None = None, *, batch_size: int = BATCH) -> Any:
        if translations is not None:
            raise ValueError("a classifier scores texts, and takes no translations")
        logits, alone = self._logits(texts, batch_size)
        found = [dict(zip(self.labels, row, strict=True)) for row in logits.double().log_softmax(1).tolist()]
        return found[0] if alone else found

    @torch.inference_mode()
    def _logits(self, texts: Any, batch_size: int) -> tuple[Tensor, bool]:
        """n x K, and whether there was one alone."""
        rows, alone = self._pairs(texts) if self.pairs else self._texts(texts)
        if not rows:
            return torch.zeros(0, len(self.labels)), alone
        dataset, most = self._dataset(rows), self._most()
        for number, size in enumerate(dataset.sizes.tolist(), 1):
            check_length(size + 1, most, f"text {number}")
        found = torch.zeros(len(rows), len(self.labels))
        for chosen in batches(dataset.sizes.tolist(), batch_size):
            sample = self._moved(dataset.collater([dataset[index] for index in chosen]))
            found[chosen] = self._of_batch(sample["net_input"]).float().cpu()
        return found, alone

    def _most(self) -> int | None:
        """Tokens of a text at most, with its end."""
        most = None if isinstance(self.task, NLITask) else self.model.max_positions()
        return None if most is None else most + 1

    def _of_batch(self, net_input: dict[str, Any]) -> Tensor:
        return self.model(**net_input)

    def _texts(self, texts: Any) -> tuple[list[tuple[list[str], ...]], bool]:
        found, alone = as_list(texts)
        return [(self._words(text, f"text {number}"),) for number, text in enumerate(found, 1)], alone

    def _pairs(self, texts: Any) -> tuple[list[tuple[list[str], ...]], bool]:
        alone = isinstance(texts, tuple) and len(texts) == 2 and all(isinstance(text, str) for text in texts)
        if isinstance(texts, str):
            raise ValueError(f"expected pairs of texts, (first, second), got {texts!r:.60}")
        rows = []
        for number, pair in enumerate([texts] if alone else as_list(texts, (), (str, tuple, list))[0], 1):
            if isinstance(pair, str) or len(pair) != 2:
                raise ValueError(f"text {number}: expected a pair of texts, (first, second), got {pair!r:.60}")
            rows.append(tuple(self._words(text, f"text {number}") for text in pair))
        return rows, alone

    def _words(self, text: str, place: str) -> list[str]:
        words = self.source.encode(text)
        check_length(len(words) + 1, None, place)
        return words

    def _dataset(self, rows: Sequence[tuple[list[str], ...]]) -> Any:
        if isinstance(self.task, TextClassificationTask):
            sides = [self.task._ids(list(side)) for side in zip(*rows, strict=True)]
            return TextClassificationDataset(
                sides[0], [0] * len(rows), self.task.dictionary.pad(), False, sides[1] if self.task.pairs else None
            )
        for number, row in enumerate(rows, 1):
            unknown = [word for side in row for word in side if word not in self.task.vocabulary]
            if unknown:
                raise ValueError(f"text {number}: the word {unknown[0]!r} is not in the vocabulary of training")
        pairs = [SentencePair(tuple(one), tuple(other), self.labels[0]) for one, other in rows]
        return PairsDataset(pairs, self.task.vocabulary, self.labels, shuffle=False)
