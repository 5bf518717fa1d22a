"""bAbI question answering, one model for each task, the models of several seeds as one (Kim et al. 2017, section 4.3).

configs/structured_attention/question_answering has the training of appendix A.4, with fairseq's `sgd` and `fixed`
schedule (the learning rate of each epoch in a list).  fairseq-validate --report-seeds tells the seeds apart.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task

from seqstruct.bridge.options import flag
from seqstruct.data.arguments import at_least
from seqstruct.data.babi.dataset import StackedQuestions, encode
from seqstruct.data.babi.folder import VOCABULARY
from seqstruct.data.babi.stories import read_questions
from seqstruct.data.files import existing
from seqstruct.data.text.aligned import read_lines
from seqstruct.tasks.folder_task import FolderTask


@dataclass
class BabiQAConfig(FairseqDataclass):
    data: Optional[str] = flag(None, "folder made by data-prep/babi.sh")
    memory: int = flag(25, "facts remembered, the last ones before a question; 1 or more")
    seeds: int = flag(1, "models trained as one, each with a seed of its own; 1 or more")
    first_seed: int = flag(1, "seed of the first of them, 0 or more; the rest count up")
    renormalize: float = flag(
        40.0, "l2 norm that a seed's gradient is scaled down to where it exceeds it; 0 for no limit"
    )


@register_task("babi_qa", dataclass=BabiQAConfig)
class BabiQATask(FolderTask):
    """vocabulary: id by word.  seeds: of the models that train as one."""

    cfg: BabiQAConfig
    needs = f"babi_qa needs a folder made by data-prep/babi.sh, with {VOCABULARY}"

    def __init__(self, cfg: BabiQAConfig):
        super().__init__(cfg)
        if not (Path(cfg.data) / VOCABULARY).is_file():
            raise ValueError(f"{self.needs}; got {cfg.data}")
        at_least(cfg, memory=1, seeds=1, first_seed=0, renormalize=0)
        if cfg.first_seed + cfg.seeds > 2**63:
            raise ValueError(f"first_seed: expected seeds below 2**63, got {cfg.seeds} from {cfg.first_seed} on")
        words = read_lines(Path(cfg.data) / VOCABULARY)
        self.vocabulary = {word: number for number, word in enumerate(words)}
        self.seeds = range(cfg.first_seed, cfg.first_seed + cfg.seeds)

    def load_dataset(self, split: str, epoch: int = 1, **_: Any) -> None:
        """Read train, valid or test.  Raises ValueError naming file and line for what the vocabulary does not have."""
        path = existing(Path(self.cfg.data) / f"{split}.txt")
        questions = encode(read_questions(path), self.vocabulary, self.cfg.memory, path)
        self.datasets[split] = StackedQuestions(questions, self.seeds, shuffle=split == "train")

    def optimizer_step(self, optimizer: Any, model: Any, update_num: int) -> None:
        """Renormalise the gradient of each seed by itself, and step; seeds are the first axis of all parameters."""
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        if self.cfg.renormalize and gradients:
            norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)  # S
            scale = (self.cfg.renormalize / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(max=1.0)
            for gradient in gradients:
                gradient.mul_(scale.view(-1, *[1] * (gradient.dim() - 1)))
        optimizer.step()
