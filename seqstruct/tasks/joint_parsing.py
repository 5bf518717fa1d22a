"""Parsing, and tasks that see what a parser predicts, trained together on corpora that need not overlap (Peng 2022).

Batches are drawn from the union of the training corpora.  Splits other than train are read of every corpus that has
them, `valid_dm` of one alone.  docs/tutorials/parsing.md trains a model.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from omegaconf import II
from torch import Tensor

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.bridge.options import flag
from seqstruct.data.parsing.dataset import CorporaUnion, Dictionaries
from seqstruct.data.parsing.folder import DICTIONARIES, read_meta, read_split
from seqstruct.tasks.folder_task import FolderTask


@dataclass
class JointParsingConfig(FairseqDataclass):
    data: Optional[str] = flag(None, "folder made by `seqstruct prepare parsing`")
    corpora: str = flag("", "names of the folder's corpora to use, with commas between them (default: all)")
    word_dropout: float = flag(0.25, "a word seen c times becomes unknown with probability a / (a + c); 0 for none")
    share_of_others: float = flag(
        1.0, "share of the other corpora's training sentences that an epoch draws beside those of the last corpus, in "
             "(0, 1]"
    )
    pretrained_parser: str = flag(
        "", "checkpoint of a model on some of these corpora, whose parsers a new model begins with"
    )
    seed: int = II("common.seed")


@register_task("joint_parsing", dataclass=JointParsingConfig)
class JointParsingTask(FolderTask):
    """kinds: trees, graphs or classes for each corpus by name; labels: of graphs and classes; deterministic: L bool."""

    cfg: JointParsingConfig
    needs = "joint_parsing needs a folder made by `seqstruct prepare parsing`"

    def __init__(self, cfg: JointParsingConfig):
        super().__init__(cfg)
        if not 0 <= cfg.word_dropout < math.inf:
            raise ValueError(f"--word-dropout: expected a finite number, 0 or more, got {cfg.word_dropout}")
        if not 0 < cfg.share_of_others <= 1:
            raise ValueError(f"--share-of-others: expected a share in (0, 1], got {cfg.share_of_others}")
        self.meta = meta = read_meta(cfg.data)
        paths = [str(Path(cfg.data) / name) for name in DICTIONARIES]
        self.dictionaries = Dictionaries(*(Dictionary.load(path) for path in paths))
        self.dictionary = self.dictionaries.words
        chosen = [name for name in cfg.corpora.split(",") if name] or list(meta["corpora"])
        unknown = [name for name in chosen if name not in meta["corpora"]]
        if unknown:
            raise ValueError(f"--corpora: expected some of {', '.join(meta['corpora'])}, got {', '.join(unknown)}")
        described = {name: meta["corpora"][name] for name in chosen}
        self.kinds = {name: entry["kind"] for name, entry in described.items()}
        self.labels: Dict[str, List[str]] = {n: e["labels"] for n, e in described.items() if "labels" in e}
        self.deterministic: Dict[str, Tensor] = {
            name: torch.tensor([label in set(entry["deterministic"]) for label in entry["labels"]])
            for name, entry in described.items()
            if entry["kind"] == "graphs"
        }

    def load_dataset(self, split: str, epoch: int = 1, **_: Any) -> None:
        """Read a split of all corpora that have it, or of one: "SPLIT_CORPUS".

        Raises ValueError if none has it, or a file is altered.
        """
        part, _, only = split.partition("_")
        names = [n for n in self.kinds if (not only or n == only) and part in self.meta["corpora"][n]["files"]]
        if not names:
            raise ValueError(f"{self.cfg.data}: no corpus has the split {split!r}")
        training = part == "train"
        self.datasets[split] = CorporaUnion(
            {name: read_split(self.cfg.data, name, part, self.meta) for name in names},
            self.dictionaries,
            self.labels,
            word_dropout=self.cfg.word_dropout if training else 0.0,
            share_of_others=self.cfg.share_of_others if training else 1.0,
            seed=self.cfg.seed,
        )

    def train_step(self, sample: Dict[str, Any], model: Any, *rest: Any, **named: Any) -> Any:
        """fairseq's, of batches without the words that were dropped: evaluation, also of the training set, has all."""
        batches = {}
        for name, batch in sample["net_input"]["batches"].items():
            tokens = batch["tokens"].clone()
            tokens[:, 0].masked_fill_(batch["dropped"], self.dictionary.unk())
            batches[name] = {**batch, "tokens": tokens}
        return super().train_step({**sample, "net_input": {"batches": batches}}, model, *rest, **named)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """The model, with the parsers of the pretrained one unless it is built to be filled from its own checkpoint.

        Raises ValueError if the pretrained model has no parser that this one needs, or has it in another size.
        """
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.pretrained_parser and not from_checkpoint:
            model.take_parsers(load_checkpoint(self.cfg.pretrained_parser)["model"], self.cfg.pretrained_parser)
        return model
