"""Symbol tagging through the front door: it learns what a window can and no more, and padding does not matter."""

from __future__ import annotations

import re

import pytest
import torch
from fairseq import checkpoint_utils

from seqstruct.tasks.symbol_tagging import SymbolTaggingConfig, SymbolTaggingTask
from tests.data.scripts import prepared
from tests.models.front_door import fairseq, sizes

MODELS = {
    "attention": ("structured_transformer_lm", *sizes("decoder", dim=16, inner=16, heads=2),
                  "--decoder-self-attention"),
    "recurrent": ("recurrent_lm", "--hidden-size", "24", "--decoder-layers", "1", "--cell"),
    "stack": ("stack_lstm_lm", "--hidden-size", "12", "--stack"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parity") / "parity"
    prepared("abilities", "--task", "parity", "--train", 600, "--valid", 40, "--test", 40, "--lengths", "5:10",
             "--long-lengths", "13:14", "--out", folder)
    return folder


def train(data, out, kind, mechanism, updates):
    return fairseq(
        "train", data, "--task", "symbol_tagging", "--criterion", "symbol_tagging", "--arch", *MODELS[kind], mechanism,
        "--optimizer", "adam", "--lr", "0.02", "--batch-size", "16", "--max-update", updates, "--save-dir", out,
        "--no-epoch-checkpoints", "--log-format", "json", "--valid-subset", "valid,test,test_long",
        "--update-epoch-batch-itr", "True",
    )


def said(log, split, statistic):
    return [float(value) for value in re.findall(rf'"{split}_{statistic}": "?([\d.]+)', log)]


@pytest.mark.training
def test_a_recurrent_model_counts(data, tmp_path):
    log = train(data, tmp_path, "recurrent", "LSTM", 200)
    assert said(log, "valid", "rule")[-1] < 80 and said(log, "valid", "accuracy")[-1] > 95
    assert len(set(said(log, "test_long", "rule"))) == 1 and said(log, "test_long", "rule")[0] < 70
    assert said(log, "test_long", "accuracy")[-1] > 90


@pytest.mark.training
@pytest.mark.parametrize("kind, mechanism", [
    ("attention", "delta(negative_eigenvalues=True)"), ("stack", "superposition_stack(size=3, sigmoid=True)")])
def test_other_models_train(data, tmp_path, kind, mechanism):
    log = train(data, tmp_path, kind, mechanism, 4)
    assert said(log, "valid", "accuracy")[-1] > 20
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(tmp_path / "checkpoint_last.pt")])
    task.load_dataset("test_long")
    task.load_dataset("test")
    model.eval()
    dataset = task.dataset("test")
    alone, padded = dataset.collater([dataset[0]]), dataset.collater([dataset[i] for i in range(7)])
    with torch.no_grad():
        one, all_of_them = (model(**sample["net_input"])[0] for sample in (alone, padded))
    torch.testing.assert_close(one[0], all_of_them[0, : one.size(1)], rtol=1e-4, atol=1e-5)


def test_batches_hold_what_is_asked_for(data):
    task = SymbolTaggingTask.setup_task(SymbolTaggingConfig(data=str(data)))
    task.load_dataset("train")
    dataset = task.dataset("train")
    order = dataset.ordered_indices()
    assert sorted(order.tolist()) == list(range(600)) and (dataset.sizes[order][1:] >= dataset.sizes[order][:-1]).all()
    sample = dataset.collater([dataset[i] for i in (0, 5, 9)])
    source, target, pad = sample["net_input"]["src_tokens"], sample["target"], task.dictionary.pad()
    assert (source[:, 0] == task.dictionary.bos()).all() and (target[:, 0] == pad).all()
    for row, length in enumerate(sample["net_input"]["src_lengths"].tolist()):
        bits = [int(task.dictionary[i]) for i in source[row, 1:length]]
        asked = [int(task.dictionary[i]) for i in target[row, 1:length]]
        assert asked == [sum(bits[: i + 1]) % 2 for i in range(len(bits))] and (target[row, length:] == pad).all()
        assert sample["levels"][row, 1:length].tolist() == list(range(1, length))
    assert sample["ntokens"] == int((target != pad).sum()) and dataset.collater([]) == {}


def test_a_folder_of_its_own_is_needed(tmp_path):
    with pytest.raises(ValueError, match="seqstruct prepare abilities"):
        SymbolTaggingTask.setup_task(SymbolTaggingConfig(data=str(tmp_path)))
