"""Classifiers fine-tuned from RoBERTa, against fairseq-validate on the prepared data."""

from __future__ import annotations

import re

import pytest
import torch

import seqstruct
from tests.models.front_door import fairseq

pytestmark = pytest.mark.training  # all use a trained model


def test_labels_are_those_of_fairseq_validate(roberta):
    loaded = seqstruct.load(roberta.checkpoint)
    loaded.task.load_dataset("valid")
    dataset = loaded.task.datasets["valid"]
    rows = [dataset[index] for index in range(len(dataset))]
    dictionary, special = loaded.task.source_dictionary, {0, 2}
    texts = [loaded.source.decode([dictionary[int(token)] for token in row["net_input.src_tokens"]
                                   if int(token) not in special]) for row in rows]
    found = loaded.classify(texts)
    gold = [loaded.labels[int(row["target"])] for row in rows]
    printed = fairseq("validate", roberta.data / "sst", "--path", roberta.checkpoint, "--task", "sentence_prediction",
                      "--criterion", "sentence_prediction", "--num-classes", 2, "--init-token", 0, "--separator-token",
                      2, "--valid-subset", "valid", "--batch-size", 7)
    right = sum(one == other for one, other in zip(found, gold, strict=True))
    expected = float(re.findall(r"accuracy ([\d.]+)", printed)[-1])
    assert 100 * right / len(gold) == pytest.approx(expected, abs=0.1)
    sample = dataset.collater(rows)
    with torch.no_grad():
        logits = loaded.model(**sample["net_input"], features_only=True,
                              classification_head_name="sentence_classification_head")[0]
    assert found == [loaded.labels[index] for index in logits.argmax(1)]
    assert loaded.labels == ["0", "1"] and set(loaded.score(texts[0])) == {"0", "1"}
    assert seqstruct.load(roberta.checkpoint, roberta.data).classify(texts[:3]) == found[:3]
    with pytest.raises(ValueError, match="text 1 has .* and the model takes 61 at most"):
        loaded.classify("a " * 90)
    with pytest.raises(ValueError, match="text 1 is empty"):
        loaded.classify([" "])
