"""Rewriting formulas from prefix to infix notation (Kim et al. 2017, sec. 4.1).

docs/tutorials/formal_languages.md has the training of appendix A.2, in which a loss is the mean over formulas of the
sum over their symbols (--sentence-avg).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Optional, Tuple

from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from torch import Tensor

from seqstruct.bridge.options import flag
from seqstruct.data.tree_transduction.folder import SIDES, read_meta, read_split
from seqstruct.tasks.folder_task import FolderTask


@dataclass
class TreeTransductionConfig(FairseqDataclass):
    data: Optional[str] = flag(None, "folder made by `seqstruct prepare tree_transduction`")
    max_source_positions: int = flag(1024, "longest source, in symbols")
    max_target_positions: int = flag(1024, "longest target, in symbols")


@register_task("tree_transduction", dataclass=TreeTransductionConfig)
class TreeTransductionTask(FolderTask):
    """Prefix forms, the root symbol first and no end-of-sentence symbol last; infix forms end in one."""

    cfg: TreeTransductionConfig
    source_ends = False  # in an end-of-sentence symbol; for those who encode text themselves
    needs = "tree_transduction needs a folder made by `seqstruct prepare tree_transduction`"

    def __init__(self, cfg: TreeTransductionConfig):
        super().__init__(cfg)
        self.meta = read_meta(cfg.data)
        self.dictionary, self.target = (Dictionary.load(str(Path(cfg.data) / f"dict.{side}.txt")) for side in SIDES)

    def load_dataset(self, split: str, epoch: int = 1, **_: Any) -> None:
        """Read a split: train, valid or test.

        Raises ValueError if a file is missing or altered, or, with file and line, a formula is not one.
        """
        found = read_split(self.cfg.data, split, self.meta)
        sources = [self._encode(self.dictionary, symbols, end=False) for symbols in found.prefix]
        targets = [self._encode(self.target, symbols, end=True) for symbols in found.infix]
        sides = sources, list(map(len, sources)), self.dictionary, targets, list(map(len, targets)), self.target
        self.datasets[split] = LanguagePairDataset(*sides, left_pad_source=False, left_pad_target=False)

    @staticmethod
    def _encode(dictionary: Dictionary, symbols: List[str], end: bool) -> Tensor:
        return dictionary.encode_line(
            " ".join(symbols), line_tokenizer=str.split, add_if_not_exist=False, append_eos=end
        ).long()

    def max_positions(self) -> Tuple[int, int]:
        return self.cfg.max_source_positions, self.cfg.max_target_positions

    def build_dataset_for_inference(
        self, src_tokens: List[Tensor], src_lengths: List[int], constraints: Any = None
    ) -> LanguagePairDataset:
        """Formulas that fairseq-interactive reads, which end in EOS; it is taken off.  ValueError with constraints."""
        if constraints is not None:
            raise ValueError("constrained decoding is not offered for formulas")
        sources = [tokens[tokens != self.dictionary.eos()] for tokens in src_tokens]
        return LanguagePairDataset(
            sources, [len(source) for source in sources], self.dictionary, tgt_dict=self.target, left_pad_source=False
        )
