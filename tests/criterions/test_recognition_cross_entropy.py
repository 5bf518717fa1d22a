"""Losses of recognition by hand, auxiliary ones of members alone, accuracies by length beside the trivial rules'."""

from __future__ import annotations

from math import exp, inf, log, nan
from types import SimpleNamespace

import pytest
import torch
from fairseq.logging import metrics

from seqstruct.criterions.recognition_cross_entropy import RecognitionCrossEntropy

PAD, EOS = 1, 2


def criterion_of(language_modeling=0.0, next_symbols=0.0, **options):
    task = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD), longest=45,
                           cfg=SimpleNamespace(next_symbols=True))
    return RecognitionCrossEntropy(task, language_modeling, next_symbols, **options)


def softplus(x):
    return log(1 + exp(x))


def sample_of():
    """Two strings, "ab" a member and "b" none, over a = 4, b = 5; after BOS three positions."""
    return {
        "net_input": {}, "target": torch.tensor([1, 0]), "ntokens": 5, "lengths": torch.tensor([2, 1]),
        "symbols": torch.tensor([[4, 5, EOS], [5, EOS, PAD]]),
        "next_symbols": torch.tensor([[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]).bool(),
        "right": torch.tensor([[1, 0, 1, 1, 0], [1, 1, 0, 1, 0]]).bool(),
    }


LOGITS = torch.tensor([0.5, 2.0])
SYMBOLS = torch.zeros(1, 3, 6).index_fill_(2, torch.tensor([0, 1, 3]), -torch.inf)  # EOS, a and b alike
NEXT = torch.tensor([[[1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0]]])


def model(**given):
    return (LOGITS, *((SYMBOLS, NEXT) if given["members"] is not None else (None, None)))


RECOGNITION = (softplus(-0.5), softplus(2.0))
LANGUAGE_MODELING = log(3)
NEXT_SYMBOLS = (softplus(-1.0) + (log(2)) + (2 * log(2) + softplus(-2.0)) / 3) / 3


def test_recognition_alone():
    loss, size, logged = criterion_of()(model, sample_of())
    assert float(loss) == pytest.approx(sum(RECOGNITION)) and size == 2 == logged["sample_size"]
    assert set(logged) == {"cross_entropy", "counts", "ntokens", "nsentences", "sample_size"}
    each, _, _ = criterion_of()(model, sample_of(), reduce=False)
    assert each.tolist() == pytest.approx(RECOGNITION)


def test_auxiliary_losses_are_means_over_the_members():
    """The update divides by the two strings; the one member's mean counts whole."""
    loss, _, logged = criterion_of(0.7, 0.3)(model, sample_of())
    expected = sum(RECOGNITION) + 2 * (0.7 * LANGUAGE_MODELING + 0.3 * NEXT_SYMBOLS)
    assert float(loss) == pytest.approx(expected, rel=1e-6)
    assert float(logged["cross_entropy"]) == pytest.approx(sum(RECOGNITION))
    assert float(logged["language_modeling"]) == pytest.approx(LANGUAGE_MODELING)
    assert float(logged["next_symbols"]) == pytest.approx(NEXT_SYMBOLS) and int(logged["members"]) == 1


def test_positions_after_a_string_do_not_count():
    sample = sample_of()
    sample["target"] = torch.tensor([0, 1])
    padded = torch.zeros(1, 3, 6).index_fill_(2, torch.tensor([0, 1, 3]), -torch.inf)
    sample["next_symbols"] = torch.tensor([[[0, 1, 0], [0, 0, 1], [0, 0, 0]]]).bool()
    next_logits = torch.tensor([[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [9.0, 9.0, 9.0]]])
    _, _, logged = criterion_of(1.0, 1.0)(lambda **_: (LOGITS, padded, next_logits), sample)
    assert float(logged["language_modeling"]) == pytest.approx(log(3))
    assert float(logged["next_symbols"]) == pytest.approx(log(2))


def test_a_batch_without_members_has_recognition_alone():
    sample = sample_of()
    sample["target"], sample["next_symbols"] = torch.tensor([0, 0]), torch.zeros(0, 3, 3).bool()
    loss, _, _ = criterion_of(1.0, 1.0)(lambda **_: (LOGITS, SYMBOLS[:0], NEXT[:0]), sample)
    assert float(loss) == pytest.approx(softplus(0.5) + softplus(2.0))


def reduced(logs):
    with metrics.aggregate() as aggregated:
        for batch in logs:
            RecognitionCrossEntropy.reduce_metrics(batch)
    return aggregated.get_smoothed_values()


def test_accuracy_by_length_and_the_best_trivial_rule():
    """Lengths 0 to 20, 21 to 40, 41 to 45; the string of length 46 counts with the last."""
    sample = sample_of()
    sample["target"], sample["lengths"] = torch.tensor([1, 1, 0, 0, 1]), torch.tensor([0, 20, 21, 41, 46])
    sample["right"] = torch.tensor([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1]]).bool()
    logits = torch.tensor([0.0, -1.0, -1.0, 1.0, 3.0])
    logs = [criterion_of(report_by_length=True)(lambda **_: (logits, None, None), sample)[2]]
    for batches in ([logs, logs], [logs + logs]):
        found = reduced(batches)
        assert (found["accuracy"], found["baseline"]) == (60.0, 60.0)
        assert [found[f"accuracy_{n}"] for n in (20, 40, 60)] == [50.0, 100.0, 50.0]
        assert [found[f"baseline_{n}"] for n in (20, 40, 60)] == [100.0, 100.0, 100.0]
        assert "accuracy_80" not in found and not any(name.startswith("_") for name in found)
    plain = reduced([[criterion_of()(lambda **_: (logits, None, None), sample)[2]]])
    assert plain["accuracy"] == 60.0 and "accuracy_20" not in plain
    assert reduced([[]]) == {}


def test_the_logged_loss_is_the_same_however_strings_are_batched():
    criterion, sample = criterion_of(0.7, 0.3), sample_of()
    other = {name: value[1:] for name, value in sample.items() if isinstance(value, torch.Tensor)}
    rest = {**other, "target": sample["target"][1:], "next_symbols": torch.zeros(0, 3, 3).bool(), "ntokens": 0}
    member = {**{name: value[:1] for name, value in sample.items() if isinstance(value, torch.Tensor)}, "ntokens": 0}
    logs = [
        criterion(lambda **_: (LOGITS[:1], SYMBOLS, NEXT), {**member, "net_input": {}})[2],
        criterion(lambda **_: (LOGITS[1:], SYMBOLS[:0], NEXT[:0]), {**rest, "net_input": {}})[2],
    ]
    expected = sum(RECOGNITION) / 2 + 0.7 * LANGUAGE_MODELING + 0.3 * NEXT_SYMBOLS
    for batches in ([[one] for one in logs], [logs], [[criterion(model, sample)[2]]]):
        assert reduced(batches)["loss"] == pytest.approx(expected)


def test_figures_are_means_over_strings_and_members():
    logs = [criterion_of(1.0, 1.0)(model, sample_of())[2], criterion_of(1.0, 1.0)(model, sample_of())[2]]
    found = reduced([logs])
    assert found["cross_entropy"] == pytest.approx(sum(RECOGNITION) / 2)
    assert found["language_modeling"] == pytest.approx(LANGUAGE_MODELING)
    assert found["loss"] == pytest.approx(sum(RECOGNITION) / 2 + LANGUAGE_MODELING + NEXT_SYMBOLS)
    assert found["accuracy"] == 50.0 and found["baseline"] == 100.0


def test_wrong_weights():
    for weights, told in (((-1, 0), "language_modeling_weight: expected a finite number, 0 or more, got -1"),
                          ((nan, 0), "language_modeling_weight: expected a finite number, 0 or more, got nan"),
                          ((0, -0.5), "next_symbols_weight: expected a finite number, 0 or more, got -0.5"),
                          ((0, inf), "next_symbols_weight: expected a finite number, 0 or more, got inf")):
        with pytest.raises(ValueError, match=told):
            criterion_of(*weights)
    task = SimpleNamespace(target_dictionary=None, longest=5, cfg=SimpleNamespace(next_symbols=False))
    with pytest.raises(ValueError, match="goes with --next-symbols alone"):
        RecognitionCrossEntropy(task, 0.0, 1.0)
