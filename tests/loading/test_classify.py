"""Labels of raw texts and of pairs, against fairseq-validate on the prepared data."""

from __future__ import annotations

import math
import re

import pytest
import torch

import seqstruct
from seqstruct.data.nli.folder import write_pairs
from seqstruct.data.nli.read import Pairs, SentencePair
from seqstruct.data.text_classification.folder import Labelled, write_sentences
from tests.loading.trained import sizes, train
from tests.models.front_door import fairseq

pytestmark = pytest.mark.training  # all use a trained model


@pytest.fixture(scope="module")
def loaded(classifier):
    return seqstruct.load(classifier.checkpoint)


def test_labels_are_those_of_fairseq_validate(classifier, loaded):
    printed = fairseq("validate", classifier.data, "--task", "text_classification", "--path", classifier.checkpoint,
                      "--valid-subset", "valid", "--batch-size", 5)
    texts = [text for _, text in classifier.rows]
    found = loaded.classify(texts)
    right = sum(label == guess for (label, _), guess in zip(classifier.rows, found, strict=True))
    assert right > 14 and set(found) == {"good", "bad"}
    accuracy = float(re.search(r"accuracy ([\d.]+)", printed)[1])
    assert accuracy == pytest.approx(100 * right / len(texts), abs=1e-3)
    assert loaded.classify(texts, batch_size=1) == found and loaded.classify(texts[0]) == found[0]
    loaded.task.load_dataset("valid")
    dataset = loaded.task.datasets["valid"]
    samples = dataset.collater([dataset[i] for i in range(len(dataset))])
    with torch.no_grad():
        assert [loaded.labels[i] for i in loaded.model(**samples["net_input"]).argmax(1)] == found


def test_scores_are_log_probabilities_of_all_labels(classifier, loaded):
    texts = [text for _, text in classifier.rows]
    scores = loaded.score(texts)
    assert [max(row, key=row.get) for row in scores] == loaded.classify(texts)
    for row in scores:
        assert list(row) == ["bad", "good"] and sum(map(math.exp, row.values())) == pytest.approx(1.0)
    assert loaded.score(texts[2], batch_size=3) == pytest.approx(scores[2])


def test_what_is_wrong_is_said(loaded):
    with pytest.raises(ValueError, match="a classifier does not translate: ask classify or score"):
        loaded.translate(["fine"])
    with pytest.raises(ValueError, match="text 2 is empty"):
        loaded.classify(["fine", "  "])
    with pytest.raises(ValueError, match="text 1 has 31 tokens with its end, and the model takes 20 at most"):
        loaded.classify("so " * 30)
    with pytest.raises(ValueError, match="text 1: expected a string, got tuple"):
        loaded.classify([("one", "two")])
    with pytest.raises(ValueError, match="takes no translations"):
        loaded.score("fine", "gut")
    assert loaded.classify([]) == [] == loaded.score([])
    assert loaded.classify("\u2603 unheard-of") in loaded.labels


def test_pairs_of_nli(tmp_path):
    pairs = [SentencePair((a, "man", "runs"), (b, "man"), "same" if a == b else "other")
             for a in "abc" for b in "abc"]
    write_pairs({split: Pairs(pairs, 0) for split in ("train", "valid", "test")}, ["other", "same"], tmp_path / "data",
                {}, lowercase=True)
    checkpoint = train(tmp_path / "data", tmp_path / "run", "--task", "nli", "--arch", "decomposable_attention",
                       "--criterion", "classification_cross_entropy", "--batch-size", 9, "--max-update", 2)
    loaded = seqstruct.load(checkpoint)
    texts = [("A man runs", "b man"), ("c man runs", "c man")]
    found = loaded.classify(texts)
    assert found == [loaded.classify(pair, batch_size=1) for pair in texts]
    with pytest.raises(ValueError, match="text 1: expected a pair of texts"):
        loaded.classify(["a man"])
    with pytest.raises(ValueError, match="expected pairs of texts, .first, second., got 'a man'"):
        loaded.classify("a man")
    with pytest.raises(ValueError, match="the word 'snowman' is not in the vocabulary"):
        loaded.classify([("a snowman", "a man")])
    with pytest.raises(ValueError, match="text 1: expected a pair of texts"):
        loaded.classify([("a", "b", "c")])
    assert loaded.classify([]) == []


def test_pairs_of_texts(tmp_path):
    rows = [Labelled("same" if a == b else "other", [a, "x"], [b]) for a in "abc" for b in "abc"]
    write_sentences(tmp_path / "data", {split: rows for split in ("train", "valid", "test")}, ["other", "same"],
                    dict.fromkeys("abcx", 1), {})
    checkpoint = train(tmp_path / "data", tmp_path / "run", "--task", "text_classification", "--arch",
                       "structured_transformer_classifier", *sizes("encoder"), "--criterion",
                       "classification_cross_entropy", "--batch-size", 9, "--max-update", 2)
    loaded = seqstruct.load(checkpoint)
    texts = [("a x", "b"), ("c x", "c"), ("b", "a x")]
    ids = [[loaded.task._ids([text.split()])[0].long() for text in pair] for pair in texts]
    with torch.no_grad():
        logits = [loaded.model(one[None], torch.tensor([len(one)]), other[None], torch.tensor([len(other)]))
                  for one, other in ids]
    expected = [row.log_softmax(1)[0].tolist() for row in logits]
    found = [list(row.values()) for row in loaded.score(texts)]
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected))
    assert loaded.classify(texts[0]) == loaded.classify(texts)[0] and loaded.classify([]) == []
