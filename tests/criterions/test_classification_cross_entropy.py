"""Loss in nats and accuracy in percent, over all sentences of all batches."""

from __future__ import annotations

import pytest
import torch
from fairseq.logging import metrics
from torch.nn import functional as F

from seqstruct.criterions.classification_cross_entropy import ClassificationCrossEntropy, most_predicted


def run(logits, target):
    criterion = ClassificationCrossEntropy(task=None)
    sample = {"net_input": {}, "target": target, "ntokens": 3 * len(target)}
    return criterion, sample, criterion(lambda: logits, sample)


def test_loss_and_accuracy(generator):
    logits = torch.randn(5, 3, generator=generator, requires_grad=True)
    target = logits.argmax(1).clone()
    target[:2] = (target[:2] + 1) % 3
    criterion, sample, (loss, size, log) = run(logits, target)
    torch.testing.assert_close(loss, F.cross_entropy(logits, target, reduction="sum"))
    each, _, _ = criterion(lambda: logits, sample, reduce=False)
    torch.testing.assert_close(each.sum(), loss)
    assert size == log["nsentences"] == log["sample_size"] == 5 and int(log["correct"]) == 3
    loss.backward()
    assert logits.grad.isfinite().all()


def test_batches_are_averaged_by_their_sentences(generator):
    logs = []
    logits, target = torch.randn(7, 2, generator=generator), torch.tensor([0, 1, 1, 0, 0, 1, 1])
    for part in (slice(0, 2), slice(2, 7)):
        logs.append(run(logits[part], target[part])[2][2])
    with metrics.aggregate() as aggregated:
        ClassificationCrossEntropy.reduce_metrics(logs)
    values = aggregated.get_smoothed_values()
    assert values["loss"] == pytest.approx(float(F.cross_entropy(logits, target)), abs=1e-5)
    assert values["accuracy"] == pytest.approx(100 * float((logits.argmax(1) == target).float().mean()), abs=1e-3)
    assert values["most_predicted"] == pytest.approx(100 * int(logits.argmax(1).bincount().max()) / 7, abs=1e-4)
    with metrics.aggregate() as aggregated:
        ClassificationCrossEntropy.reduce_metrics([])
    assert not aggregated.get_smoothed_values()


def test_batches_that_are_constant_each_by_itself_are_no_constant_predictor():
    """Validation reduces batch after batch."""
    target = torch.tensor([0, 0, 0])
    with metrics.aggregate() as aggregated:
        for label in (2, 1):
            logits = torch.eye(3)[[label] * 3]
            ClassificationCrossEntropy.reduce_metrics([run(logits, target)[2][2]])
    assert aggregated.get_smoothed_values()["most_predicted"] == 50
    with metrics.aggregate() as aggregated:
        for _ in range(2):
            ClassificationCrossEntropy.reduce_metrics([run(torch.eye(3)[[1] * 3], target)[2][2]])
    assert aggregated.get_smoothed_values()["most_predicted"] == 100
    assert most_predicted([0, 0]) == 0
