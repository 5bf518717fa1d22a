"""Cross-entropy of targets at some symbols, with how many are right, beside what a simple rule has right.

    loss                nats of a target: what is minimised
    accuracy            targets that are right, in percent
    sequence_accuracy   sequences whose targets are all right, in percent
    rule                accuracy of the best simple rule on the same split (`seqstruct.data.abilities.rules`)
    accuracy_3          accuracy of the targets of level 3 (gap, depth, position ...), with `report_by_level`
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional as F

from seqstruct.bridge.options import flag
from seqstruct.criterions.logs import SummedCriterion

LEVELS = 256  # those beyond count as the last


@dataclass
class SymbolTaggingCriterionConfig(FairseqDataclass):
    report_by_level: bool = flag(False, "in validation also report accuracy of each level, as accuracy_3")


@register_criterion("symbol_tagging", dataclass=SymbolTaggingCriterionConfig)
class SymbolTaggingCriterion(SummedCriterion):
    """The loss of an update is the mean over its targets."""

    made_for = ("symbol_tagging",)

    def __init__(self, task: Any, report_by_level: bool = False):
        super().__init__(task)
        self.report_by_level = report_by_level

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, int, Dict[str, Any]]:
        """The summed loss of a batch (or of each target, in their order, without reduce), their number, the log."""
        logits = model(**sample["net_input"])[0]
        asked = sample["target"] != self.padding_idx
        target, rows = sample["target"][asked], asked.nonzero()[:, 0]
        losses = F.cross_entropy(logits[asked].float(), target, reduction="none")
        right = logits.detach()[asked].argmax(1) == target
        wrong = torch.zeros(len(asked), dtype=torch.bool, device=asked.device).index_fill_(0, rows[~right], True)
        targets = sample["ntokens"]
        log = {
            "loss": losses.detach().sum(),
            "right": right.sum(),
            "whole": (~wrong).sum(),
            "rule": sample["rule"] * targets,
            "ntokens": targets,
            "nsentences": len(asked),
            "sample_size": targets,
        }
        if self.report_by_level and not model.training:
            level = sample["levels"][asked].clamp(max=LEVELS - 1)
            log["level_targets"] = level.bincount(minlength=LEVELS)
            log["level_right"] = level[right].bincount(minlength=LEVELS)
        return losses.sum() if reduce else losses, targets, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        """Log the figures of the module docstring, not rounded."""
        sums: Dict[str, Any] = {}
        for log in logging_outputs:
            for name, value in log.items():
                sums[name] = sums.get(name, 0) + value
        targets, sequences = int(sums.get("ntokens", 0)), int(sums.get("nsentences", 0))
        if not targets:
            return
        metrics.log_scalar("loss", float(sums["loss"]) / targets, targets)
        metrics.log_scalar("accuracy", 100.0 * int(sums["right"]) / targets, targets)
        metrics.log_scalar("sequence_accuracy", 100.0 * int(sums["whole"]) / sequences, sequences)
        metrics.log_scalar("rule", float(sums["rule"]) / targets, targets)
        if "level_targets" in sums:
            pairs = zip(sums["level_targets"].tolist(), sums["level_right"].tolist(), strict=True)
            for level, (count, right) in enumerate(pairs):
                if count:
                    metrics.log_scalar(f"accuracy_{level}", 100.0 * right / count, count)
