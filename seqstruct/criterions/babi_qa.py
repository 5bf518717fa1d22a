"""Cross-entropy of answers, and how often answers and supporting facts are right, for models of several seeds at once.

    loss            of an answer, nats; what is minimised is its sum over the batch (Sukhbaatar et al. 2015, section 5)
    accuracy        answers that are right, in percent
    fact_accuracy   questions whose facts are chosen exactly, in their order, in percent; a fact that the memory has
                    lost cannot be chosen, and a question with more or fewer facts than steps counts as wrong

Figures are means over the seeds; loss and gradient of a seed do not depend on the others.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from seqstruct.bridge.options import flag

FIGURES = ("loss", "accuracy", "fact_accuracy")


@dataclass
class BabiQACriterionConfig(FairseqDataclass):
    report_seeds: bool = flag(False, "also report the figures of each seed, as accuracy_seed_3 and so on")


@register_criterion("babi_qa", dataclass=BabiQACriterionConfig)
class BabiQACriterion(FairseqCriterion):
    """The loss is a sum over questions and seeds; of an update split over batches, the mean of the batches' sums."""

    made_for = ("babi_qa",)

    def __init__(self, task: Any, report_seeds: bool = False):
        super().__init__(task)
        self.report_seeds = report_seeds
        self.seeds = task.seeds

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, int, Dict[str, Any]]:
        """The summed loss, 1, and the log.  The facts are looked at in evaluation alone."""
        output = model(**sample["net_input"])
        log_probs = model.get_normalized_probs(output, log_probs=True)  # S B V
        target = sample["target"]
        losses = -log_probs.gather(2, target.unsqueeze(2)).squeeze(2)  # S B
        sums = {"loss": losses.detach(), "accuracy": 100.0 * (log_probs.argmax(2) == target)}
        if not model.training:
            sums["fact_accuracy"] = 100.0 * right_facts(model.best_facts(output), sample["support"])
        log: Dict[str, Any] = {
            "nsentences": target.size(1), "ntokens": target.size(1), "sample_size": 1, "nseeds": target.size(0),
        }
        for name, values in sums.items():
            of_seeds = values.sum(1)
            log[name] = of_seeds.sum()
            if self.report_seeds:
                for seed, value in zip(self.seeds, of_seeds.tolist(), strict=True):
                    log[f"{name}_seed_{seed}"] = value
        return losses.sum() if reduce else losses, 1, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        questions = sum(log.get("nsentences", 0) for log in logging_outputs)
        if not questions:
            return
        seeds = next(log["nseeds"] for log in logging_outputs if log.get("nsentences"))
        names = {name for log in logging_outputs for name in log if name.startswith(FIGURES)}
        for name in sorted(names):
            total = float(sum(log.get(name, 0.0) for log in logging_outputs))
            count = questions * (1 if "_seed_" in name else seeds)
            metrics.log_scalar(name, total / count, questions, round=4)


def right_facts(found: Tensor, support: Tensor) -> Tensor:
    """S B bool: whether the facts found, S B K, are the support, S B F, with -1 after its end, -2 for what is lost."""
    K, F = found.size(2), support.size(2)
    if F < K:
        return found.new_zeros(found.shape[:2]).bool()
    return (found == support[:, :, :K]).all(2) & (support[:, :, K:] == -1).all(2)
