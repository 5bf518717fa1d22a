"""Loss, accuracy of targets and of sequences, and the simple rule beside them, by numbers that are plain."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.logging import metrics

from seqstruct.criterions.symbol_tagging import LEVELS, SymbolTaggingCriterion
from seqstruct.data.abilities.ability import Tagged
from seqstruct.data.abilities.dataset import TaggedSequences

EXAMPLES = [
    Tagged(list("aba"), ["a", None, "b"], [2, 0, 7]), Tagged(list("b"), ["a"], [2]),
    Tagged(list("bbaab"), [None, None, "b", "b", "a"], [0, 0, 2, 999, 2]),
]


@pytest.fixture
def dictionary():
    found = Dictionary()
    for symbol in "ab":
        found.add_symbol(symbol)
    return found


@pytest.fixture
def model():
    """Says what was read last, with three times the odds of each other symbol; of 6 in all."""

    def call(src_tokens, src_lengths):
        return (math.log(3.0) * torch.nn.functional.one_hot(src_tokens, 6).float(), None)

    call.training = False
    return call


def logged(model, dictionary, batches, **options):
    criterion = SymbolTaggingCriterion(SimpleNamespace(target_dictionary=dictionary), **options)
    dataset = TaggedSequences(EXAMPLES, dictionary, 62.5, shuffle=False)
    found = [criterion(model, dataset.collater([dataset[i] for i in batch])) for batch in batches]
    with metrics.aggregate() as aggregated:
        SymbolTaggingCriterion.reduce_metrics([log for _, _, log in found])
    return found, aggregated.get_smoothed_values()


@pytest.mark.parametrize("batches", [[[0, 1, 2]], [[2], [0, 1]]])
def test_figures_are_those_of_the_hand(model, dictionary, batches):
    """Read at the targets: a, a; b; a, a, b.  Asked: a, b; a; b, b, a.  One of six is right, no sequence is."""
    found, values = logged(model, dictionary, batches)
    right, wrong = -math.log(3 / 8), -math.log(1 / 8)
    assert sum(size for _, size, _ in found) == 6
    assert sum(float(loss) for loss, _, _ in found) == pytest.approx(right + 5 * wrong, rel=1e-6)
    assert values["loss"] == pytest.approx((right + 5 * wrong) / 6, rel=1e-6)
    assert values["accuracy"] == pytest.approx(100 / 6) and values["rule"] == 62.5
    assert values["sequence_accuracy"] == 0 and not any(name.startswith("accuracy_") for name in values)


def test_a_sequence_is_right_where_all_its_targets_are(dictionary, model):
    model = _always(dictionary.index("a"))
    _, values = logged(model, dictionary, [[0, 1], [2]])
    assert values["accuracy"] == pytest.approx(100 * 3 / 6) and values["sequence_accuracy"] == pytest.approx(100 / 3)


def test_accuracy_by_level(dictionary):
    _, values = logged(_always(dictionary.index("a")), dictionary, [[0, 1, 2]], report_by_level=True)
    assert values["accuracy_2"] == pytest.approx(75.0) and values["accuracy_7"] == 0
    assert values[f"accuracy_{LEVELS - 1}"] == 0 and "accuracy_0" not in values
    training = _always(dictionary.index("a"))
    training.training = True
    assert "accuracy_2" not in logged(training, dictionary, [[0]], report_by_level=True)[1]


def test_each_target_without_reduction(model, dictionary):
    criterion = SymbolTaggingCriterion(SimpleNamespace(target_dictionary=dictionary))
    dataset = TaggedSequences(EXAMPLES, dictionary, 0.0, shuffle=False)
    losses, _, _ = criterion(model, dataset.collater([dataset[0]]), reduce=False)
    assert losses.tolist() == pytest.approx([-math.log(3 / 8), -math.log(1 / 8)], rel=1e-6)


def test_no_batches_log_nothing():
    with metrics.aggregate() as aggregated:
        SymbolTaggingCriterion.reduce_metrics([])
    assert not aggregated.get_smoothed_values()


def _always(symbol):
    def call(src_tokens, src_lengths):
        return torch.nn.functional.one_hot(torch.full_like(src_tokens, symbol), 6).float(), None

    call.training = False
    return call
