"""Text classification: one label for each sentence or pair, from folders of `seqstruct prepare text-classification`.

`seqstruct prepare listops` makes such folders too.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Optional

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from torch import Tensor

from seqstruct.bridge.options import flag
from seqstruct.data.arguments import at_least
from seqstruct.data.text.binarise import word_number
from seqstruct.data.text_classification.dataset import TextClassificationDataset
from seqstruct.data.text_classification.folder import (
    DICTIONARY,
    VECTORS,
    check_file,
    read_meta,
    read_second,
    read_split,
)
from seqstruct.tasks.folder_task import FolderTask


@dataclass
class TextClassificationConfig(FairseqDataclass):
    data: Optional[str] = flag(None, "folder made by `seqstruct prepare text-classification`")
    max_length: Optional[int] = flag(None, "cut texts after so many tokens, 1 or more (default: do not)")


@register_task("text_classification", dataclass=TextClassificationConfig)
class TextClassificationTask(FolderTask):
    """Sentences with labels 0 .. number of labels - 1.

    labels: their names.  pairs: whether a label is of two sentences.  word_vectors: V x size float32 in the order of
    the dictionary, or None if the folder has none.
    """

    cfg: TextClassificationConfig
    needs = "text_classification needs a folder made by `seqstruct prepare text-classification`"

    def __init__(self, cfg: TextClassificationConfig):
        super().__init__(cfg)
        if cfg.max_length is not None:
            at_least(cfg, max_length=1)
        meta = read_meta(cfg.data)
        self.dictionary = Dictionary.load(str(Path(cfg.data) / DICTIONARY))
        self.meta, self.labels = meta, meta["labels"]
        self.pairs = bool(meta.get("pairs", False))
        self.word_vectors: Optional[Tensor] = None
        if VECTORS in meta["sha256"]:
            self.word_vectors = torch.from_numpy(np.load(check_file(cfg.data, meta, VECTORS)))

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """fairseq's.  Raises ValueError if labels are of pairs and the model takes one text."""
        model = super().build_model(cfg, from_checkpoint)
        if self.pairs and not getattr(model, "takes_pairs", False):
            name = getattr(cfg, "_name", None) or type(model).__name__
            raise ValueError(f"{name} labels single texts, and {self.cfg.data} has pairs")
        return model

    def load_dataset(self, split: str, epoch: int = 1, **_: Any) -> None:
        """Read a split: train, valid or test.  Raises ValueError on an altered file, empty sentence or wrong label."""
        texts, labels = read_split(self.cfg.data, split, self.meta)
        second = self._ids(read_second(self.cfg.data, split, self.meta)) if self.pairs else None
        self.datasets[split] = TextClassificationDataset(
            self._ids(texts), labels, self.dictionary.pad(), split == "train", second
        )

    def _ids(self, texts: List[List[str]]) -> List[Tensor]:
        return [torch.tensor([word_number(word, self.dictionary) for word in words[: self.cfg.max_length]],
                             dtype=torch.int32) for words in texts]
