"""Symbol tagging: a target at some symbols of a sequence, from folders of `seqstruct prepare abilities`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from fairseq.data import Dictionary
from fairseq.tasks import register_task

from seqstruct.bridge.options import flag
from seqstruct.data.abilities.dataset import TaggedSequences
from seqstruct.data.abilities.folder import DICTIONARY, best_rule, read_meta, read_split
from seqstruct.tasks.cfl_language_modeling import CFLLanguageModelingConfig
from seqstruct.tasks.folder_task import FolderTask


@dataclass
class SymbolTaggingConfig(CFLLanguageModelingConfig):
    data: Optional[str] = flag(None, "folder made by `seqstruct prepare abilities`")
    tokens_per_sample: int = flag(1024, "positions of the model: most symbols of a sequence, and one (> 1)")


@register_task("symbol_tagging", dataclass=SymbolTaggingConfig)
class SymbolTaggingTask(FolderTask):
    """Sequences of symbols with a target after some of them; a language model's output at a symbol is its answer.

    meta: the folder's description.  rule: the name of the best simple rule, `seqstruct.data.abilities.rules`.
    """

    cfg: SymbolTaggingConfig
    needs = "symbol_tagging needs a folder made by `seqstruct prepare abilities`"

    def __init__(self, cfg: SymbolTaggingConfig):
        super().__init__(cfg)
        self.meta = read_meta(cfg.data)
        self.rule = best_rule(self.meta)
        self.dictionary = self.target = Dictionary.load(str(Path(cfg.data) / DICTIONARY))

    def load_dataset(self, split: str, epoch: int = 1, **_: Any) -> None:
        """Read a split: train, valid, test or test_long.  Raises ValueError if its file is missing or altered."""
        examples = read_split(self.cfg.data, split, self.meta)
        reached = self.meta["rules"][self.rule][split][0]
        self.datasets[split] = TaggedSequences(examples, self.dictionary, reached, split == "train")
