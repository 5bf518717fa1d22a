"""Cross-entropy with activation regularisation (Merity et al. 2018, sec. 4.6) and supervised span attention.

In training the loss of a token, in nats, is

    L_LM + alpha mean(dropped^2) + beta mean((raw_t - raw_{t-1})^2) + lambda H(y, w)         (Peng 2022, eq. 3.7)

alpha, AR: on the last layer's output after its dropout; beta, TAR: on the output before it, over steps of one segment;
H is the cross-entropy of the attention w over the spans before a token against y, uniform over those of them that are
constituents, and 0 where none is.  Gold spans that are not attended to (longer than the model's longest, or from before
the start of the text) are left out of y.

`loss` and `nll_loss` are logged in bits, as fairseq's are, and both are L_LM in validation; `activation_penalty` and
`span_loss` are of a token, in nats.
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
from seqstruct.criterions.logs import SummedCriterion, summed
from seqstruct.data.corpora.parsed_text import MOST_WORDS


@dataclass
class RegularizedCrossEntropyConfig(FairseqDataclass):
    activation_penalty: float = flag(2.0, "alpha of AR, 0 or more; 0 for models without raw and dropped features")
    temporal_activation_penalty: float = flag(1.0, "beta of TAR, 0 or more")
    span_supervision: float = flag(
        0.0, "lambda of eq. 3.7, 0 or more (0.01 for PaLM-S); takes a model with span attention and a task with gold "
             "spans"
    )


@register_criterion("regularized_cross_entropy", dataclass=RegularizedCrossEntropyConfig)
class RegularizedCrossEntropy(SummedCriterion):
    """Cross-entropy with activation regularisation (Merity et al. 2018) and supervised span attention (Peng 2022)."""

    def __init__(
        self, task: Any, activation_penalty: float, temporal_activation_penalty: float, span_supervision: float
    ):
        """Raises ValueError on weights that are negative, NaN or infinite."""
        super().__init__(task)
        self.alpha, self.beta, self.span_supervision = activation_penalty, temporal_activation_penalty, span_supervision
        names = "activation_penalty", "temporal_activation_penalty", "span_supervision"
        for name, value in zip(names, (self.alpha, self.beta, self.span_supervision), strict=True):
            if not 0 <= value < math.inf:
                raise ValueError(f"{name}: expected a finite number, 0 or more, got {value}")

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, int, Dict[str, Any]]:
        """The loss summed over tokens (of each target, B T, without reduce), the number of tokens, the log.

        Raises ValueError if the model or the task lacks what a weight above 0 needs.
        """
        output = model(**sample["net_input"])
        log_probs = model.get_normalized_probs(output, log_probs=True)
        target = model.get_targets(sample, output)
        real = target != self.padding_idx
        losses = F.nll_loss(log_probs.transpose(1, 2), target, ignore_index=self.padding_idx, reduction="none")
        nll, tokens = losses.sum(), sample["ntokens"]
        log = {"nll_loss": nll.detach(), "ntokens": tokens, "nsentences": target.size(0), "sample_size": tokens}
        total = nll
        if self.alpha or self.beta:
            penalty = self._activations(output[1], real)
            log["activation_penalty"] = penalty.detach() * tokens
            if model.training:
                total = total + penalty * tokens
        if self.span_supervision:
            span_loss = self._spans(output[1], sample)
            log["span_loss"] = span_loss.detach()
            if model.training:
                total = total + self.span_supervision * span_loss
        log["loss"] = total.detach()
        return total if reduce else losses, tokens, log

    def _activations(self, extra: Dict[str, Any], real: Tensor) -> Tensor:
        if "raw" not in extra:
            raise ValueError("activation penalties need a model with raw and dropped features, as awd_lstm has")
        raw, dropped = extra["raw"], extra["dropped"]
        if not bool(real.any()):  # the end of the last rows of a stream
            return dropped.new_zeros(())
        penalty = self.alpha * dropped[real].square().mean()
        both = real[:, 1:] & real[:, :-1]
        if raw.size(1) > 1 and bool(both.any()):
            penalty = penalty + self.beta * (raw[:, 1:] - raw[:, :-1])[both].square().mean()
        return penalty

    def _spans(self, extra: Dict[str, Any], sample: Dict[str, Any]) -> Tensor:
        if "span_scores" not in extra or "gold_spans" not in sample:
            raise ValueError(
                "span supervision needs a model with span attention, as palm, and gold spans: the task "
                "span_language_modeling"
            )
        return span_cross_entropy(extra["span_scores"], extra["span_mask"], sample["gold_spans"]).sum()

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        """Log the figures of the module's docstring, and ppl, the perplexity of a token."""
        sums = summed(logging_outputs)
        tokens = sums.get("ntokens", 0.0)
        if not tokens:
            return
        metrics.log_scalar("loss", sums["loss"] / tokens / math.log(2), tokens, round=5)
        metrics.log_scalar("nll_loss", sums["nll_loss"] / tokens / math.log(2), tokens, round=5)
        metrics.log_derived("ppl", lambda meters: 2 ** min(meters["nll_loss"].avg, 1000.0))
        for name in ("activation_penalty", "span_loss"):
            if name in sums:
                metrics.log_scalar(name, sums[name] / tokens, tokens, round=5)


def span_cross_entropy(scores: Tensor, there: Tensor, gold: Tensor) -> Tensor:
    """H(y, w) of each token, nats, B T; 0 where no span that there is is a constituent.

    scores, there: B T m, of spans of 1 .. m words that end at one word, and which of them there are; gold: B T long,
    bit l set where the span of l + 1 words is a constituent.
    Raises ValueError if m is more than the 63 words that have a bit.
    """
    if scores.size(2) > MOST_WORDS:
        raise ValueError(f"gold spans have at most {MOST_WORDS} words; the model attends to spans of {scores.size(2)}")
    y = (gold.unsqueeze(2) >> torch.arange(scores.size(2), device=gold.device) & 1).bool() & there
    none = ~there.any(2, keepdim=True)
    log_weights = scores.float().masked_fill(~there & ~none, -torch.inf).log_softmax(2)
    count = y.sum(2).clamp(min=1)
    return -log_weights.masked_fill(~y, 0.0).sum(2) / count
