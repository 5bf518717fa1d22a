"""Cross-entropy of one label for each sentence, in nats, and accuracy in percent."""

import math
from typing import Any, Dict, List, Tuple

from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional as F


@register_criterion("classification_cross_entropy", dataclass=FairseqDataclass)
class ClassificationCrossEntropy(FairseqCriterion):
    """The loss of an update is the mean over its sentences; logged are loss (nats a sentence) and accuracy."""

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, int, Dict[str, Any]]:
        """The summed loss of a batch (or of each sentence, B, without reduce), their number, the log."""
        logits, target = model(**sample["net_input"]), sample["target"]
        losses = F.cross_entropy(logits.float(), target, reduction="none")
        log = {
            "loss": losses.detach().sum(),
            "correct": (logits.detach().argmax(1) == target).sum(),
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": target.size(0),
        }
        return losses.sum() if reduce else losses, target.size(0), log

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        """Log loss and accuracy over all sentences."""
        sentences = sum(log.get("nsentences", 0) for log in logging_outputs)
        if not sentences:
            return
        loss = sum(float(log.get("loss", 0.0)) for log in logging_outputs) / sentences
        correct = sum(int(log.get("correct", 0)) for log in logging_outputs)
        metrics.log_scalar("loss", loss if math.isfinite(loss) else math.inf, sentences, round=6)
        metrics.log_scalar("accuracy", 100.0 * correct / sentences, sentences, round=4)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Yes."""
        return True
