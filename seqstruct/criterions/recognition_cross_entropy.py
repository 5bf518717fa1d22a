"""Binary cross-entropy of membership, with the auxiliary losses of FLaRe (Butoi et al. 2025), in nats.

The loss of an update is R + a L + b N, each the mean over its strings:

    R   cross-entropy of the label, over all strings
    L   language modeling: cross-entropy of the next symbol, EOS among them, meaned over the positions of a member
    N   next symbols: cross-entropy of whether each symbol, or the end, may come next, meaned over symbols and positions

L and N are of the members alone; in a step those of each batch, and a batch without members has none.  Logged are

    loss            R + a L + b N, whatever the batches
    cross_entropy   R, by which a checkpoint is chosen
    accuracy        in percent; a string is taken for a member where its logit is 0 or more
    baseline        the accuracy of the best of the rules that look at length, first or last symbol, or nothing
                    (`data.recognition.trivial`), fitted to training: the best on the strings that are evaluated
    language_modeling, next_symbols   L and N where they are trained

and with `report_by_length` accuracy_20, baseline_20 and so on, of the lengths up to that number and above the last.
"""

import math
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

BIN = 20  # lengths that are counted together


@dataclass
class RecognitionCrossEntropyConfig(FairseqDataclass):
    language_modeling_weight: float = flag(0.0, "a, of language modeling, 0 or more")
    next_symbols_weight: float = flag(
        0.0, "b, of the symbols that may come next, 0 or more; above, give --next-symbols"
    )
    report_by_length: bool = flag(False, f"also report accuracy and baseline of each {BIN} lengths")


@register_criterion("recognition_cross_entropy", dataclass=RecognitionCrossEntropyConfig)
class RecognitionCrossEntropy(SummedCriterion):
    """Recognition, and auxiliary losses where their weights are above 0; figures as the module's docstring says."""

    made_for = ("recognition",)

    def __init__(
        self, task: Any, language_modeling_weight: float, next_symbols_weight: float, report_by_length: bool = False
    ):
        """Raises ValueError on weights that are negative, NaN or infinite, and where the task lacks next symbols."""
        super().__init__(task)
        self.weights = {"language_modeling": language_modeling_weight, "next_symbols": next_symbols_weight}
        for name, weight in self.weights.items():
            if not 0 <= weight < math.inf:
                raise ValueError(f"{name}_weight: expected a finite number, 0 or more, got {weight}")
        if next_symbols_weight and not task.cfg.next_symbols:
            raise ValueError("next_symbols_weight: a weight above 0 goes with --next-symbols alone")
        self.bins = max(1, -(-task.longest // BIN)) if report_by_length else 1

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, int, Dict[str, Any]]:
        """The summed loss of a batch (R of each string, B, without reduce), the number of strings, the log."""
        target, strings = sample["target"], len(sample["target"])
        members = target.bool()
        logits, symbol_logits, next_logits = model(
            **sample["net_input"], members=members if any(self.weights.values()) else None
        )
        losses = F.binary_cross_entropy_with_logits(logits.float(), target.float(), reduction="none")
        log = {"cross_entropy": losses.detach().sum(), "ntokens": sample["ntokens"], "nsentences": strings,
               "sample_size": strings, "counts": self._counts(logits.detach() >= 0, sample)}
        total, count = losses.sum(), members.sum()
        parts = {"language_modeling": self._language_modeling, "next_symbols": self._next_symbols}
        given = {"language_modeling": symbol_logits, "next_symbols": next_logits}
        for name, weight in self.weights.items():
            if weight:
                part = parts[name](given[name].float(), sample, members)
                log[name], log["members"] = part.detach(), count
                log["auxiliary"] = log.get("auxiliary", 0) + weight * part.detach()
                total = total + weight * strings * part / count.clamp(min=1)
        return total if reduce else losses, strings, log

    def _language_modeling(self, logits: Tensor, sample: Dict[str, Any], members: Tensor) -> Tensor:
        symbols = sample["symbols"][members]
        losses = F.cross_entropy(logits.transpose(1, 2), symbols, ignore_index=self.padding_idx, reduction="none")
        return (losses.sum(1) / (sample["lengths"][members] + 1)).sum()

    def _next_symbols(self, logits: Tensor, sample: Dict[str, Any], members: Tensor) -> Tensor:
        losses = F.binary_cross_entropy_with_logits(logits, sample["next_symbols"].float(), reduction="none").mean(2)
        real = sample["symbols"][members] != self.padding_idx
        return ((losses * real).sum(1) / (sample["lengths"][members] + 1)).sum()

    def _counts(self, predicted: Tensor, sample: Dict[str, Any]) -> Tensor:
        """Bins of lengths x (strings, those that are right, those that each trivial rule has right)."""
        right = predicted == sample["target"].bool()
        columns = torch.cat([torch.ones_like(right)[:, None], right[:, None], sample["right"]], 1).double()
        bins = ((sample["lengths"] - 1).clamp(min=0) // BIN).clamp(max=self.bins - 1)
        return columns.new_zeros(self.bins, columns.size(1)).index_add_(0, bins, columns)

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        strings = sum(log.get("nsentences", 0) for log in logging_outputs)
        if not strings:
            return
        metrics.log_derived("loss", lambda meters: sum(
            meters[name].avg for name in ("cross_entropy", "_auxiliary") if name in meters), priority=10)
        recognition = sum(float(log.get("cross_entropy", 0)) for log in logging_outputs)
        metrics.log_scalar("cross_entropy", recognition / strings, strings)
        members = sum(int(log.get("members", 0)) for log in logging_outputs)
        for name in ("language_modeling", "next_symbols", "auxiliary"):
            if members and any(name in log for log in logging_outputs):
                shown = "_auxiliary" if name == "auxiliary" else name
                metrics.log_scalar(shown, sum(float(log.get(name, 0)) for log in logging_outputs) / members, members)
        counts = sum(log["counts"] for log in logging_outputs if "counts" in log)
        _log_accuracy("", counts.sum(0).tolist())
        if len(counts) > 1:
            for number, row in enumerate(counts.tolist(), 1):
                if row[0]:
                    _log_accuracy(f"_{BIN * number}", row)


def _log_accuracy(suffix: str, row: List[float]) -> None:
    strings, right, *rules = row
    metrics.log_scalar(f"accuracy{suffix}", 100 * right / strings, strings, round=4)
    names = [f"_rule_{number}{suffix}" for number in range(len(rules))]
    for name, count in zip(names, rules, strict=True):
        metrics.log_scalar(name, 100 * count / strings, strings)
    metrics.log_derived(f"baseline{suffix}", lambda meters: round(max(meters[name].avg for name in names), 4))
