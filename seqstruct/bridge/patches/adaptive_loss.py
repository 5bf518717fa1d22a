"""The criterion of adaptive softmax, as `fairseq-eval-lm` has its log-probabilities."""

from __future__ import annotations

from typing import Any, Callable

from fairseq.criterions.adaptive_loss import AdaptiveLoss
from torch import Tensor
from torch.nn import functional as F

from seqstruct.bridge.patches.patch import patch


@patch(AdaptiveLoss, "forward")
def forward(
    _: Callable, self: AdaptiveLoss, model: Any, sample: dict[str, Any], reduce: bool = True
) -> tuple[Tensor, int, dict[str, Any]]:
    """Padding is told by its index in the bands of rare words too, where it is that of a word: their second word had no
    loss there.  Without reduce losses are of each target, B T in a row.
    """
    softmax = getattr(getattr(model, "decoder", None), "adaptive_softmax", None)
    if softmax is None:
        raise ValueError("--criterion adaptive_loss needs a model with --adaptive-softmax-cutoff")
    output = model(**sample["net_input"])
    rows = model.get_targets(sample, output)
    target = rows.reshape(-1)
    logits, targets = softmax(output[0], target)
    losses = F.cross_entropy(logits[0], targets[0], reduction="none")
    for number, (band, words) in enumerate(zip(logits[1:], targets[1:], strict=True)):
        if words is not None:
            there = (target >= softmax.cutoff[number]) & (target < softmax.cutoff[number + 1])
            losses = losses.index_add(0, there.nonzero().squeeze(1), F.cross_entropy(band, words, reduction="none"))
    padding = target == self.padding_idx
    losses = losses.masked_fill(padding, 0.0)
    loss, tokens = losses.sum() if reduce else losses, int((~padding).sum())
    size = rows.size(0) if self.sentence_avg else tokens
    log = {"loss": loss.detach(), "ntokens": tokens, "nsentences": rows.size(0), "sample_size": size}
    return loss, size, log
