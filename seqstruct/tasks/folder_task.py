"""What tasks share whose folder a command of this package made, not fairseq-preprocess."""

from typing import Any, ClassVar, List, Optional, Tuple

from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask


class FolderTask(FairseqTask):
    """A task on the folder `cfg.data`: sentences of any length whose words and targets no dictionary has.

    needs: what is said where no folder is given.  labels: whether models give no logits of the dictionary's symbols.
    """

    needs: ClassVar[str]
    labels: ClassVar[bool] = False
    dictionary: Optional[Dictionary] = None
    target: Optional[Dictionary] = None

    def __init__(self, cfg: Any):
        """Raises ValueError if no folder is given; tasks do if it is another's, altered, or options do not fit."""
        super().__init__(cfg)
        if cfg.data is None:
            raise ValueError(self.needs)

    @classmethod
    def setup_task(cls, cfg: Any, **_: Any) -> "FolderTask":
        return cls(cfg)

    @property
    def symbols(self) -> Tuple[List[str], List[str]]:
        """Of sources, and of targets or labels, in the order of their indices."""
        words = list(getattr(self, "vocabulary", ())) if self.dictionary is None else self.dictionary.symbols
        if self.target is not None:
            return words, self.target.symbols
        return words, self.labels if isinstance(self.labels, list) else words

    @property
    def source_dictionary(self) -> Optional[Dictionary]:
        """Of the words, with the special symbols before them; None if they are in none of fairseq's."""
        return self.dictionary

    @property
    def target_dictionary(self) -> Optional[Dictionary]:
        """Of targets that are symbols; None where they are none of a dictionary's."""
        return self.target
