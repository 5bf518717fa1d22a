"""Text classification: one label for each sentence, from folders of `seqstruct prepare text_classification`.

fairseq's types are read at run time: no postponed annotations here.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from torch import Tensor

from seqstruct.data.text_classification.dataset import TextClassificationDataset
from seqstruct.data.text_classification.folder import DICTIONARY, VECTORS, check_file, read_meta, read_split


@dataclass
class TextClassificationConfig(FairseqDataclass):
    """Options of the task."""

    data: Optional[str] = field(
        default=None, metadata={"help": "folder made by `seqstruct prepare text_classification`"}
    )


@register_task("text_classification", dataclass=TextClassificationConfig)
class TextClassificationTask(FairseqTask):
    """Sentences with labels 0 .. number of labels - 1.

    labels: their names.  word_vectors: V x size float32 in the order of the dictionary, or None if the folder has none.
    """

    cfg: TextClassificationConfig

    def __init__(self, cfg: TextClassificationConfig, dictionary: Dictionary, meta: dict):
        super().__init__(cfg)
        self.dictionary, self.meta, self.labels = dictionary, meta, meta["labels"]
        self.word_vectors: Optional[Tensor] = None
        if VECTORS in meta["sha256"]:
            self.word_vectors = torch.from_numpy(np.load(check_file(cfg.data, meta, VECTORS)))

    @classmethod
    def setup_task(cls, cfg: TextClassificationConfig, **_: Any) -> "TextClassificationTask":
        """Read the folder's description, dictionary and vectors.

        Raises ValueError if the folder is not one of `seqstruct prepare text_classification`, or is altered.
        """
        if cfg.data is None:
            raise ValueError("text_classification needs a folder made by `seqstruct prepare text_classification`")
        meta = read_meta(cfg.data)
        return cls(cfg, Dictionary.load(str(Path(cfg.data) / DICTIONARY)), meta)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **_: Any) -> None:
        """Read a split: train, valid or test.  Raises ValueError on an altered file, empty sentence or wrong label."""
        texts, labels = read_split(self.cfg.data, split, self.meta)
        index = self.dictionary.index
        sentences = [torch.tensor([index(word) for word in words]) for words in texts]
        self.datasets[split] = TextClassificationDataset(sentences, labels, self.dictionary.pad(), split == "train")

    def max_positions(self) -> None:
        """No limit."""
        return None

    @property
    def source_dictionary(self) -> Dictionary:
        """The words."""
        return self.dictionary

    @property
    def target_dictionary(self) -> None:
        """Labels are numbers."""
        return None
