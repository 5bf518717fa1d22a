"""Cross-entropy of strings of a context-free language, against the distribution they were drawn from.

The loss is the sum over a string's symbols and EOS, averaged over the strings of an update (Stack Attention, appendix
D.3).  All figures are in nats, not in bits as fairseq's own criterions have them:

    loss            of a string: what is minimised
    cross_entropy   of a symbol, EOS counted
    perplexity      its exponential
    lower_bound     cross-entropy of the true distribution on the same strings, of a symbol: of p(w | l) and of the
                    choice of the length l, uniform over the valid lengths of the split
    difference      cross_entropy - lower_bound: 0 is optimal
"""

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from seqstruct.bridge.options import flag
from seqstruct.criterions.logs import SummedCriterion, summed

BY_LENGTH = "length_"


@dataclass
class CFLCrossEntropyConfig(FairseqDataclass):
    report_by_length: bool = flag(
        False, "also report cross_entropy, lower_bound and difference of each length, as cross_entropy_40 and so on; "
               "the bound of one length takes the length as given"
    )


@register_criterion("cfl_cross_entropy", dataclass=CFLCrossEntropyConfig)
class CFLCrossEntropy(SummedCriterion):
    """Negative log-likelihood of whole strings; one update divides by its number of strings, however it is split."""

    made_for = ("cfl_language_modeling",)

    def __init__(self, task: Any, report_by_length: bool = False):
        super().__init__(task)
        self.report_by_length = report_by_length
        self.lengths = task.lengths

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, int, Dict[str, Any]]:
        """The summed loss of a batch (or of each string, B, without reduce), the number of strings, the log."""
        log_probs = model.get_normalized_probs(model(**sample["net_input"]), log_probs=True, sample=sample)
        losses = -log_probs.gather(2, sample["target"].unsqueeze(2)).squeeze(2).sum(1)
        strings, length = sample["target"].size(0), sample["target"].size(1) - 1
        total = losses.detach().double().sum()
        known = "true_log_probability" in sample
        given_length = -sample["true_log_probability"].sum() if known else torch.zeros_like(total)
        tokens = sample["ntokens"]
        log = {
            "loss": total,
            "ntokens": tokens,
            "nsentences": strings,
            "sample_size": strings,
            "lower_bound": given_length + strings * sample["true_log_valid_lengths"] if known else given_length,
            "bounded_tokens": tokens if known else 0,
        }
        if self.report_by_length:
            # several workers sum their logs key by key: the keys, and the kinds of the values, are then the same in all
            for n in self.lengths if _several_workers() else [length]:
                here = known and n == length
                log[f"{BY_LENGTH}{n}_loss"] = float(total) if here else 0.0
                log[f"{BY_LENGTH}{n}_bound"] = float(given_length) if here else 0.0
                log[f"{BY_LENGTH}{n}_tokens"] = tokens if here else 0
        return losses.sum() if reduce else losses, strings, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        """Log the figures of the module docstring; nothing is rounded, since schedules and stopping compare them."""
        sums = summed(logging_outputs)
        strings, tokens = sums.get("nsentences", 0.0), sums.get("ntokens", 0.0)
        if not strings:
            return
        metrics.log_scalar("loss", sums["loss"] / strings, strings)
        metrics.log_scalar("cross_entropy", sums["loss"] / tokens, tokens)
        metrics.log_derived("perplexity", lambda meters: _exp(meters["cross_entropy"].avg))
        if sums["bounded_tokens"]:
            _log_difference("", sums["loss"], sums["lower_bound"], tokens)
        for name in sorted(name for name in sums if name.startswith(BY_LENGTH) and name.endswith("_tokens")):
            if not sums[name]:
                continue
            key = name[: -len("tokens")]
            suffix = f"_{key[len(BY_LENGTH) : -1]}"
            metrics.log_scalar(f"cross_entropy{suffix}", sums[f"{key}loss"] / sums[name], sums[name])
            _log_difference(suffix, sums[f"{key}loss"], sums[f"{key}bound"], sums[name])


def _several_workers() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _log_difference(suffix: str, loss: float, bound: float, tokens: float) -> None:
    metrics.log_scalar(f"lower_bound{suffix}", bound / tokens, tokens)
    metrics.log_scalar(f"difference{suffix}", (loss - bound) / tokens, tokens)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
