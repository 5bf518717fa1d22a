"""Recognition of formal languages (Butoi et al. 2025): is a string a member?  Folders of `seqstruct prepare flare`.

The splits are train, valid, valid_long and test, so `--valid-subset valid_long` chooses by longer strings.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from fairseq.data import Dictionary
from fairseq.tasks import register_task

from seqstruct.bridge.options import flag
from seqstruct.data.recognition.dataset import RecognitionDataset
from seqstruct.data.recognition.folder import DICTIONARY, read_meta, read_split
from seqstruct.data.recognition.languages import find_language
from seqstruct.data.recognition.trivial import trivially_right
from seqstruct.tasks.cfl_language_modeling import CFLLanguageModelingConfig
from seqstruct.tasks.folder_task import FolderTask


@dataclass
class RecognitionConfig(CFLLanguageModelingConfig):
    data: Optional[str] = flag(None, "folder made by `seqstruct prepare flare`")
    next_symbols: bool = flag(
        False, "models also say which symbols may come next in a member; --next-symbols-weight trains it"
    )


@register_task("recognition", dataclass=RecognitionConfig)
class RecognitionTask(FolderTask):
    """Strings with BOS before them, and whether they are members.

    language: whose.  longest: the longest string of any split.
    """

    cfg: RecognitionConfig
    needs = "recognition needs a folder made by `seqstruct prepare flare`"
    labels = True

    def __init__(self, cfg: RecognitionConfig):
        super().__init__(cfg)
        self.meta = read_meta(cfg.data)
        self.dictionary = self.target = Dictionary.load(str(Path(cfg.data) / DICTIONARY))
        self.language = find_language(self.meta["language"])
        self.longest = max(self.meta[name][1] for name in ("lengths", "long_lengths", "test_lengths"))

    def load_dataset(self, split: str, epoch: int = 1, **_: Any) -> None:
        """Read a split: train, valid, valid_long or test, and what trivial rules of training have right there.

        Raises ValueError if a file is missing or altered.
        """
        train = read_split(self.cfg.data, "train", self.meta)
        examples = train if split == "train" else read_split(self.cfg.data, split, self.meta)
        following = self.language if self.cfg.next_symbols else None
        self.datasets[split] = RecognitionDataset(
            examples, self.dictionary, trivially_right(train, examples), split == "train", following
        )
