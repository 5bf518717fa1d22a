"""Losses of parsers and of what sees their output: hinge or likelihood of trees, hinge of graphs, loss of classes."""

from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

import torch
import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from seqstruct.bridge.options import flag
from seqstruct.criterions.logs import summed
from seqstruct.layers.parsing import graph_hinge, tree_hinge, tree_likelihood_loss
from seqstruct.scoring.dependency import PUNCTUATION, attachment_counts, f1, graph_counts, share

TREE_LOSSES = {"hinge": tree_hinge, "likelihood": tree_likelihood_loss}


@dataclass
class JointParsingCriterionConfig(FairseqDataclass):
    tree_loss: ChoiceEnum(tuple(TREE_LOSSES)) = flag("hinge", "of trees: structured hinge, or likelihood for marginals")


@register_criterion("joint_parsing", dataclass=JointParsingCriterionConfig)
class JointParsingCriterion(FairseqCriterion):
    """Sum of the losses of a batch's sentences, divided by their number; each corpus has its own loss.

    A pruner's logistic loss is added to the loss of its graphs, as the mean over a sentence's pairs, times its words.
    The log has, for validation: uas and uas_unpunctuated of trees (also of graph sentences that come with a tree, for
    the intermediate parser), labeled_f1 and unlabeled_f1 of graphs, accuracy of classes, all in percent.
    """

    made_for = ("joint_parsing",)

    def __init__(self, task: Any, tree_loss: str):
        super().__init__(task)
        self.tree_loss = TREE_LOSSES[str(tree_loss)]
        tags = task.dictionaries.tags
        marks = [symbol in PUNCTUATION for symbol in tags.symbols]
        self.register_buffer("punctuation", torch.tensor(marks), persistent=False)

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Loss in the units of each corpus (hinge: score; likelihood and classes: nats); sample size: sentences."""
        batches = sample["net_input"]["batches"]
        output = model(**sample["net_input"])
        log: Dict[str, Any] = {"ntokens": sample["ntokens"], "nsentences": sample["nsentences"]}
        losses = []
        for name, found in output.items():
            batch = batches[name]
            loss = getattr(self, f"_{model.kinds[name]}")(model, name, found, batch, log)
            log[f"loss_{name}"], log[f"sentences_{name}"] = loss.detach().sum(), loss.numel()
            losses.append(loss)
        total = torch.cat(losses)
        if reduce:
            total = total.sum()
        log["loss"], log["sample_size"] = total.detach().sum(), sample["nsentences"]
        return total, sample["nsentences"], log

    def _trees(self, model: Any, name: str, found: Any, batch: Dict[str, Tensor], log: Dict[str, Any]) -> Tensor:
        if not model.training:
            self._count_trees(model.best(name, found, batch["padding_mask"]), batch, "tree", log)
        return self.tree_loss(found.arcs, batch["heads"], batch["padding_mask"])

    def _graphs(self, model: Any, name: str, found: Any, batch: Dict[str, Tensor], log: Dict[str, Any]) -> Tensor:
        gold, L = batch["arcs"], found.labels.size(-1)
        if not model.training:
            self._add(log, "graph", graph_counts(model.best(name, found, batch["padding_mask"]), gold))
            if found.trees is not None and "heads" in batch:
                best = model.best(name, found.trees, batch["padding_mask"])
                self._count_trees(best, batch, "intermediate", log)
        gold = gold.masked_fill(gold >= L, -1)  # a label that training lacks cannot be predicted
        labeled = torch.zeros_like(found.possible)
        labeled.scatter_(-1, gold.clamp(min=0).unsqueeze(-1), (gold >= 0).unsqueeze(-1))
        loss = graph_hinge(found.heads, found.arcs, found.labels, found.possible | labeled, gold)
        if found.pruner is not None:
            pairs = ~(batch["padding_mask"].unsqueeze(1) | batch["padding_mask"].unsqueeze(2))
            logistic = F.binary_cross_entropy_with_logits(found.pruner, (gold >= 0).float(), reduction="none")
            words = (~batch["padding_mask"]).sum(1)
            loss = loss + (logistic * pairs).sum((1, 2)) / pairs.sum((1, 2)) * words
        return loss

    def _classes(self, model: Any, name: str, found: Any, batch: Dict[str, Tensor], log: Dict[str, Any]) -> Tensor:
        if not model.training:
            right = int((model.best(name, found, batch["padding_mask"]) == batch["classes"]).sum())
            self._add(log, "class", {"right": right, "sentences": batch["classes"].numel()})
        return F.cross_entropy(found.logits, batch["classes"], reduction="none")

    def _count_trees(self, heads: Tensor, batch: Dict[str, Tensor], prefix: str, log: Dict[str, Any]) -> None:
        punctuation = self.punctuation[batch["tokens"][:, 2, 1:]]
        self._add(log, prefix, attachment_counts(heads, batch["heads"], punctuation))

    @staticmethod
    def _add(log: Dict[str, Any], prefix: str, counts: Dict[str, int]) -> None:
        for name, count in counts.items():
            log[f"{prefix}_{name}"] = log.get(f"{prefix}_{name}", 0) + count

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        sums = summed(logging_outputs)
        size = sums.get("sample_size", 0)
        if not size:
            return
        metrics.log_scalar("loss", sums["loss"] / size, size, round=4)
        for name in [key[5:] for key in sums if key.startswith("loss_")]:
            count = sums[f"sentences_{name}"]
            metrics.log_scalar(f"loss_{name}", sums[f"loss_{name}"] / max(count, 1), count, round=4)
        counts = {name: sums[name] for name in sums if name.split("_")[0] in ("tree", "intermediate", "graph", "class")}
        for name, count in counts.items():
            metrics.log_scalar_sum(f"_{name}", count)
        for name, (numbers, derive) in DERIVED.items():
            if all(number in counts for number in numbers):
                metrics.log_derived(name, lambda meters, numbers=numbers, derive=derive: round(
                    derive(*(meters[f"_{number}"].sum for number in numbers)), 3))


DERIVED = {
    "uas": (("tree_right", "tree_words"), share),
    "uas_unpunctuated": (("tree_unpunctuated_right", "tree_unpunctuated_words"), share),
    "intermediate_uas": (("intermediate_right", "intermediate_words"), share),
    "unlabeled_f1": (("graph_unlabeled", "graph_predicted", "graph_gold"), f1),
    "labeled_f1": (("graph_labeled", "graph_predicted", "graph_gold"), f1),
    "accuracy": (("class_right", "class_sentences"), share),
}
