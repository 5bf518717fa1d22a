"""What tasks share whose folder a command of this package made, not fairseq-preprocess.

fairseq's types are read at run time: no postponed annotations here.
"""

from typing import Any, ClassVar, Optional

from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask


class FolderTask(FairseqTask):
    """A task on the folder `cfg.data`: sentences of any length whose words and targets no dictionary has.

    needs: what is said where no folder is given.
    """

    needs: ClassVar[str]

    def __init__(self, cfg: Any):
        """Raises ValueError if no folder is given; tasks do if it is another's, altered, or options do not fit."""
        super().__init__(cfg)
        if cfg.data is None:
            raise ValueError(self.needs)

    @classmethod
    def setup_task(cls, cfg: Any, **_: Any) -> "FolderTask":
        """fairseq's door to the task."""
        return cls(cfg)

    def max_positions(self) -> Any:
        """None: examples may be of any length."""
        return None

    @property
    def source_dictionary(self) -> Optional[Dictionary]:
        """None: words are not in a dictionary of fairseq's."""
        return None

    @property
    def target_dictionary(self) -> Optional[Dictionary]:
        """None: targets are no words."""
        return None
