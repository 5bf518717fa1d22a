"""Natural language inference (Kim et al. 2017, section 4.4), with `decomposable_attention`.

configs/structured_attention/inference has the training of appendix A.5.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np
import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from torch import Tensor

from seqstruct.bridge.options import flag
from seqstruct.data.arguments import at_least
from seqstruct.data.nli.dataset import PairsDataset
from seqstruct.data.nli.folder import VECTORS, VOCABULARY, read_meta, read_split
from seqstruct.data.text.aligned import read_lines
from seqstruct.tasks.folder_task import FolderTask


@dataclass
class NLIConfig(FairseqDataclass):
    data: Optional[str] = flag(None, "folder made by data-prep/snli.sh")
    initial_accumulator: float = flag(
        0.0, "where adagrad's sums of squared gradients start, 0 or more (the paper: 0.1)"
    )


@register_task("nli", dataclass=NLIConfig)
class NLITask(FolderTask):
    """labels: by name.  lowercase: whether words are.  vocabulary: word ids, counted from 1.

    word_vectors: V size float32, or None.
    """

    cfg: NLIConfig
    needs = "nli needs a folder made by data-prep/snli.sh"

    def __init__(self, cfg: NLIConfig):
        super().__init__(cfg)
        at_least(cfg, initial_accumulator=0)
        meta = read_meta(cfg.data)
        self.labels, self.lowercase = meta["labels"], meta["lowercase"]
        words = read_lines(Path(cfg.data) / VOCABULARY)
        self.vocabulary = {word: number for number, word in enumerate(words, 1)}
        path = Path(cfg.data) / VECTORS
        self.word_vectors: Optional[Tensor] = torch.from_numpy(np.load(path)) if path.is_file() else None

    def load_dataset(self, split: str, epoch: int = 1, **_: Any) -> None:
        """Read train, valid or test.  Raises ValueError naming file and line for what does not fit."""
        pairs = read_split(self.cfg.data, split, self.labels, self.vocabulary)
        self.datasets[split] = PairsDataset(pairs, self.vocabulary, self.labels, shuffle=split == "train")

    def optimizer_step(self, optimizer: Any, model: Any, update_num: int) -> None:
        """Step; before its first step adagrad's sums, which fairseq starts at 0, are set.

        Raises ValueError with initial_accumulator and another optimizer.
        """
        if self.cfg.initial_accumulator:
            if not isinstance(optimizer.optimizer, torch.optim.Adagrad):
                raise ValueError("--initial-accumulator is adagrad's: expected --optimizer adagrad with it")
            for state in optimizer.optimizer.state.values():
                if state["step"] == 0:
                    state["sum"].fill_(self.cfg.initial_accumulator)
        optimizer.step()
