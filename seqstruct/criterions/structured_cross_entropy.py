"""Label-smoothed cross-entropy plus the penalties of the model's attention mechanisms."""

from typing import Any, Dict, List, Tuple

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.logging import metrics
from torch import Tensor

from seqstruct.bridge.adapter import attention_penalty


@register_criterion("structured_cross_entropy", dataclass=LabelSmoothedCrossEntropyCriterionConfig)
class StructuredCrossEntropy(LabelSmoothedCrossEntropyCriterion):
    """fairseq's label-smoothed cross-entropy; in training, the attention penalties count once for each update.

    The log has their sum as `penalty`, in nats; `loss` and `nll_loss` are in bits, as fairseq's are.
    """

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, int, Dict[str, Any]]:
        """As fairseq's; the penalty is multiplied by the sample size, by which the trainer divides."""
        loss, sample_size, log = super().forward(model, sample, reduce)
        penalty = attention_penalty(model)
        if penalty is not None:
            log["penalty"] = penalty.detach() * sample_size
            if model.training and reduce:
                loss = loss + penalty * sample_size
        return loss, sample_size, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)
        size = sum(log.get("sample_size", 0) for log in logging_outputs)
        if size and any("penalty" in log for log in logging_outputs):
            metrics.log_scalar("penalty", sum(log.get("penalty", 0) for log in logging_outputs) / size, size, round=6)
