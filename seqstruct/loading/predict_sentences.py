"""Classifiers that were fine-tuned from RoBERTa, by fairseq's task sentence_prediction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqstruct.data.text_classification.dataset import TextClassificationDataset
from seqstruct.loading.classify import Classifying


class PredictingSentences(Classifying):
    """A text, or both texts of a pair one after the other, as the dataset of the task joins them; a label out."""

    @classmethod
    def fits(cls, model: Any, task: Any) -> bool:
        """The task sentence_prediction with labels, not numbers."""
        from fairseq.tasks.sentence_prediction import SentencePredictionTask

        return isinstance(task, SentencePredictionTask) and not task.cfg.regression_target

    @property
    def labels(self) -> list[str]:
        dictionary = self.task.label_dictionary
        return [dictionary[dictionary.nspecial + number] for number in range(self.task.cfg.num_classes)]

    @property
    def pairs(self) -> bool:
        """Whether the data has second texts."""
        return Path(self.task.cfg.data, "input1").is_dir()

    def _most(self) -> int | None:
        return self.model.max_positions() + 1

    def _of_batch(self, net_input: dict[str, Any]) -> Tensor:
        (head,) = self.model.classification_heads  # the one that the task has put there
        return self.model(net_input["src_tokens"], features_only=True, classification_head_name=head)[0]

    def _dataset(self, rows: Sequence[tuple[list[str], ...]]) -> TextClassificationDataset:
        dictionary, options = self.task.source_dictionary, self.task.cfg
        joined = []
        for row in rows:
            parts = []
            for before, words in zip((options.init_token, options.separator_token), row, strict=False):
                parts += [] if before is None else [torch.tensor([before])]
                parts.append(dictionary.encode_line(" ".join(words), add_if_not_exist=False).long())
            joined.append(torch.cat(parts))
        return TextClassificationDataset(joined, [0] * len(rows), dictionary.pad(), False)
