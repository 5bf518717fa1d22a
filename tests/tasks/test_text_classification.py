"""Text classification through the front door: it learns, padding and batches do not matter, vectors stay fixed."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from torch import nn

from seqstruct.data.text_classification.dataset import TextClassificationDataset
from seqstruct.layers.rational import CELLS
from seqstruct.models.sentences.rnn_classifier import RNNClassifier, RNNClassifierConfig
from seqstruct.tasks.text_classification import TextClassificationConfig, TextClassificationTask
from tests.data.scripts import prepared
from tests.models.front_door import fairseq
from tests.randomised import randomised

WORDS = {0: ("bad", "poor", "dull"), 1: ("good", "fine", "great")}


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Sentences with one telling word."""
    folder, generator = tmp_path_factory.mktemp("raw"), np.random.default_rng(1)
    for split, count in (("train", 150), ("dev", 30), ("test", 31)):
        lines = []
        for i in range(count):
            words = ["the"] * int(generator.integers(1, 9))
            words[int(generator.integers(len(words)))] = WORDS[i % 2][int(generator.integers(3))]
            lines.append(f"{i % 2} {' '.join(words)}\n")
        (folder / f"stsa.binary.{split}").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def data(raw, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "sst"
    prepared("sst", "--from", raw, "--unchecked", "--out", folder)
    return folder


@pytest.fixture(scope="module")
def task(data):
    return TextClassificationTask.setup_task(TextClassificationConfig(data=str(data)))


def train(data, out, *options):
    return fairseq(
        "train", data, "--task", "text_classification", "--criterion", "classification_cross_entropy", "--arch",
        "rnn_classifier", "--hidden-size", "8", "--embed-dim", "6", "--optimizer", "adam", "--lr", "0.02",
        "--batch-size", "16", "--max-epoch", "8", "--valid-subset", "valid,test", "--best-checkpoint-metric",
        "accuracy", "--maximize-best-checkpoint-metric", "--save-dir", out, "--no-epoch-checkpoints", "--log-format",
        "json", "--update-epoch-batch-itr", "True", *options,
    )


@pytest.mark.training
@pytest.mark.parametrize("cell", ["LSTM", "B_max_plus", "F"])
def test_it_learns(data, tmp_path, cell):
    log = train(data, tmp_path, "--cell", cell, "--vertical-dropout", "0.1", "--recurrent-dropout", "0.1")
    best = max(float(x) for x in re.findall(r'"valid_accuracy": "([\d.]+)"', log))
    assert best > 90
    printed = fairseq(
        "validate", data, "--task", "text_classification", "--path", tmp_path / "checkpoint_best.pt", "--valid-subset",
        "valid", "--batch-size", "7", "--log-format", "json",
    )
    assert float(re.search(r'"valid_accuracy": "?([\d.]+)', printed)[1]) == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("cell", CELLS)
def test_a_sentence_alone_and_in_a_batch(task, cell, generator):
    """Padding of the batch, and sentences beside it, change nothing."""
    model = RNNClassifier.build_model(RNNClassifierConfig(cell=cell, hidden_size=7, embed_dim=5), task).double().eval()
    randomised(model, generator, 1.0)
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    batch = dataset.collater([dataset[i] for i in range(9)])
    assert len(set(batch["net_input"]["src_lengths"].tolist())) > 1
    logits = model(**batch["net_input"])
    for i in range(9):
        alone = model(**dataset.collater([dataset[i]])["net_input"])
        torch.testing.assert_close(alone[0], logits[i])


def test_batches_hold_like_lengths(task):
    task.load_dataset("train")
    dataset = task.dataset("train")
    iterator = task.get_batch_iterator(dataset, max_sentences=10, seed=3, required_batch_size_multiple=1)
    samples = list(iterator.next_epoch_itr(shuffle=True))
    assert sorted(i for sample in samples for i in sample["id"].tolist()) == list(range(150))
    for sample in samples:
        lengths = sample["net_input"]["src_lengths"]
        assert int(lengths.max() - lengths.min()) <= 1
        assert sample["ntokens"] == int(lengths.sum())


@pytest.mark.training
def test_vectors_of_the_folder_are_fixed(raw, tmp_path):
    generator = np.random.default_rng(4)
    vectors = {word: generator.standard_normal(5) for words in WORDS.values() for word in words}
    lines = (f"{word} {' '.join(map(repr, vector.tolist()))}\n" for word, vector in vectors.items())
    (tmp_path / "vectors").write_text("".join(lines))
    words = ["--from", raw, "--unchecked", "--vectors", tmp_path / "vectors", "--out", tmp_path / "data"]
    prepared("sst", *words)
    train(tmp_path / "data", tmp_path / "out", "--cell", "B")
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(tmp_path / "out/checkpoint_last.pt")])
    assert torch.equal(model.embed_tokens.weight, task.word_vectors) and not model.embed_tokens.weight.requires_grad
    good = task.source_dictionary.index("good")
    expected = vectors["good"] / np.linalg.norm(vectors["good"])
    assert model.embed_tokens.weight[good].tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_the_perceptron_has_two_layers(task):
    model = RNNClassifier.build_model(RNNClassifierConfig(cell="C", hidden_size=7, embed_dim=5), task)
    assert isinstance(model.hidden_layer, nn.Linear) and model.output_layer.out_features == 2
    assert len(model.rnn.layers) == 2
    assert [layer.projections for layer in model.rnn.layers] == [4, 4], "no output gates"


def test_words_that_are_written_as_special_symbols_are_unknown(task):
    found = task._ids([["the", "<pad>", "</s>"], ["<s>", "<unk>"]])
    assert [ids.tolist() for ids in found] == [[task.dictionary.index("the"), 3, 3], [3, 3]]


def test_wrong_input(task):
    with pytest.raises(ValueError, match="sentence 1 is empty"):
        TextClassificationDataset([torch.tensor([4]), torch.tensor([], dtype=torch.long)], [0, 1], 1, False)
    with pytest.raises(ValueError, match="vertical_dropout: expected 0 or more and below 1, got 1.5"):
        RNNClassifier.build_model(RNNClassifierConfig(vertical_dropout=1.5), task)
    with pytest.raises(ValueError, match="embed_dim: expected 1 or more, got 0"):
        RNNClassifier.build_model(RNNClassifierConfig(embed_dim=0), task)
