"""What tasks share whose folder a command of this package made, not fairseq-preprocess."""

from typing import Any, ClassVar, Optional

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
    def source_dictionary(self) -> Optional[Dictionary]:
        """Of the words, with the special symbols before them; None if they are in none of fairseq's."""
        return self.dictionary

    @property
    def target_dictionary(self) -> Optional[Dictionary]:
        """Of targets that are symbols; None where they are none of a dictionary's."""
        return self.target
