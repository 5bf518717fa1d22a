"""Cross-entropy of one label for each sentence in nats, accuracy, and how often the favourite label is predicted.

`most_predicted` is the share of the label that is predicted most often, in percent: at 100 the predictor is constant.
"""

import math
from typing import Any, Dict, List, Sequence, Tuple

from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional as F

from seqstruct.criterions.logs import SummedCriterion


@register_criterion("classification_cross_entropy", dataclass=FairseqDataclass)
class ClassificationCrossEntropy(SummedCriterion):
    """The loss of an update is the mean over its sentences; logged are loss, accuracy and `most_predicted`."""

    made_for = ("text_classification", "nli")

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, int, Dict[str, Any]]:
        """The summed loss of a batch (or of each sentence, B, without reduce), their number, the log."""
        logits, target = model(**sample["net_input"]), sample["target"]
        losses = F.cross_entropy(logits.float(), target, reduction="none")
        predicted = logits.detach().argmax(1)
        log = {
            "loss": losses.detach().sum(),
            "correct": (predicted == target).sum(),
            "predicted": predicted.bincount(minlength=logits.size(1)),
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": target.size(0),
        }
        return losses.sum() if reduce else losses, target.size(0), log

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        sentences = sum(log.get("nsentences", 0) for log in logging_outputs)
        if not sentences:
            return
        loss = sum(float(log.get("loss", 0.0)) for log in logging_outputs) / sentences
        correct = sum(int(log.get("correct", 0)) for log in logging_outputs)
        metrics.log_scalar("loss", loss if math.isfinite(loss) else math.inf, sentences, round=6)
        metrics.log_scalar("accuracy", 100.0 * correct / sentences, sentences, round=4)
        counts = sum(log["predicted"] for log in logging_outputs if "predicted" in log).tolist()
        names = [f"_predicted_{label}" for label in range(len(counts))]
        for name, count in zip(names, counts, strict=True):
            metrics.log_scalar_sum(name, count)
        metrics.log_derived("most_predicted", lambda meters: most_predicted([meters[name].sum for name in names]))


def most_predicted(counts: Sequence[float]) -> float:
    """The greatest of the counts in percent of all, to four digits; 0 where nothing is counted yet."""
    return round(100.0 * max(counts) / max(sum(counts), 1), 4)
