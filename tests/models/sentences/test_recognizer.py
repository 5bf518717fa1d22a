"""Recognisers: each model of the recipe through task and criterion, what an answer depends on, their sizes."""

from __future__ import annotations

import re
from argparse import Namespace
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path

import pytest
import torch
from fairseq.models import MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY

from seqstruct.criterions.recognition_cross_entropy import RecognitionCrossEntropy
from seqstruct.data.recognition.folder import RecognitionRequest, write_folder
from seqstruct.tasks.recognition import RecognitionConfig, RecognitionTask
from tests.data.recognition.test_folder import SMALL
from tests.models.front_door import fairseq
from tests.recipes.composed import ROOT, composed

FAMILY = "flare/recognition"
SHARED = ("transformer", "recurrent")
ROWS = sorted({path.stem for path in (ROOT / "configs" / FAMILY / "row").glob("*.yaml")} - set(SHARED))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("recognition") / "dyck"
    write_folder(RecognitionRequest("dyck-2-3", **SMALL), path)
    return path


@cache
def build(folder, row, next_symbols=True):
    """The task and the model of a row; what its configuration does not say has its default."""
    given = composed(FAMILY, f"row={row}")["model"]
    task = RecognitionTask.setup_task(RecognitionConfig(data=str(folder), next_symbols=next_symbols))
    defaults = {f.name: f.default_factory() if f.default is MISSING else f.default
                for f in fields(MODEL_DATACLASS_REGISTRY[given["_name"]])}
    known = {name: getattr(task.cfg, value[7:-1], False) for name, value in defaults.items()
             if re.match(r"\$\{", str(value))}
    torch.manual_seed(3)
    return task, MODEL_REGISTRY[given["_name"]].build_model(Namespace(**{**defaults, **known, **given}), task)


def a_batch(task, count=6):
    task.load_dataset("train")
    data = task.dataset("train")
    return data.collater([data[i] for i in range(count)])


@pytest.mark.parametrize("row", ROWS)
def test_a_step_of_each_model(folder, row):
    """Recognition and both auxiliary losses reach every parameter, and the sum of the losses is the loss."""
    task, model = build(folder, row)
    sample = a_batch(task)
    loss, size, log = RecognitionCrossEntropy(task, 0.5, 0.25)(model, sample)
    loss.backward()
    assert size == 6 and loss.isfinite()
    members = max(1, int(log["members"]))
    expected = log["cross_entropy"] + 6 * (0.5 * log["language_modeling"] + 0.25 * log["next_symbols"]) / members
    torch.testing.assert_close(loss.detach(), expected)
    without = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()}
    assert without == set()


@pytest.mark.parametrize("row", ROWS)
def test_each_has_about_64000_parameters(folder, row):
    _, model = build(folder, row)
    assert abs(sum(p.numel() for p in model.parameters()) - 64_000) < 2_500


@pytest.mark.parametrize("row", ROWS)
def test_an_answer_is_of_one_string_alone(folder, row):
    """Padding, and the other strings of a batch, change nothing; the order of symbols does."""
    task, model = build(folder, row)
    model.eval()
    sample = a_batch(task)
    tokens, lengths = sample["net_input"]["src_tokens"], sample["net_input"]["src_lengths"]
    with torch.no_grad():
        logits, *others = model(**sample["net_input"])
        assert others == [None, None] and logits.shape == (6,)
        for row_tokens, n, logit in zip(tokens, lengths.tolist(), logits, strict=True):
            alone, _, _ = model(row_tokens[None, :n], torch.tensor([n]))
            torch.testing.assert_close(alone[0], logit, rtol=1e-4, atol=1e-5)
        string = torch.tensor([[0, 4, 6, 5, 7, 4]])
        first, second = (model(x, torch.tensor([6]))[0] for x in (string, string[:, [0, 3, 2, 1, 4, 5]]))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("row", ["tf", "lstm", "lstm_sup"])
def test_heads_of_auxiliary_losses(folder, row):
    task, model = build(folder, row)
    model.eval()
    sample = a_batch(task)
    members = sample["target"].bool()
    with torch.no_grad():
        logits, symbols, following = model(**sample["net_input"], members=members)
        features = model.decoder(sample["net_input"]["src_tokens"], features_only=True)[0]
    positions = sample["symbols"].size(1)
    assert symbols.shape == (int(members.sum()), positions, len(task.target_dictionary))
    assert following.shape == (int(members.sum()), positions, 5)
    torch.testing.assert_close(symbols, model.decoder.output_layer(features)[members])
    torch.testing.assert_close(following, model.next_symbol_head(features)[members])
    last = features[torch.arange(6), sample["lengths"]]  # of the last symbol, or of BOS
    torch.testing.assert_close(logits, model.recognition_head(last)[:, 0])
    _, plain = build(folder, row, next_symbols=False)
    assert plain.next_symbol_head is None


@pytest.mark.training
def test_first_is_learned_through_the_front_door(tmp_path: Path):
    """Whether a string begins with 1, by a small RNN; the baseline that looks at the first symbol knows it too."""
    write_folder(RecognitionRequest("first", train=300, valid=80, valid_long=20, test=60, lengths=(0, 12),
                                    long_lengths=(0, 20), test_lengths=(0, 30)), tmp_path / "first")
    common = [tmp_path / "first", "--task", "recognition", "--criterion", "recognition_cross_entropy"]
    fairseq(
        "train", *common, "--arch", "recurrent_recognizer_lstm_flare", "--decoder-layers", 1, "--hidden-size", 12,
        "--dropout", 0, "--variational-dropout", 0, "--optimizer", "adam", "--lr", 0.02, "--max-tokens", 128,
        "--max-epoch", 6, "--no-epoch-checkpoints", "--best-checkpoint-metric", "cross_entropy", "--save-dir",
        tmp_path / "run",
    )
    done = fairseq(
        "validate", *common, "--report-by-length", "--log-format", "json", "--max-tokens", 500, "--path",
        tmp_path / "run" / "checkpoint_best.pt", "--valid-subset", "valid,test",
    )
    found = {name: float(value) for name, value in re.findall(r'"((?:valid|test)_\w+)": "([\d.]+)"', done)}
    assert found["valid_accuracy"] > 85 and found["test_accuracy"] > 85
    assert found["test_baseline"] > 95 and {"test_accuracy_20", "test_accuracy_40"} <= set(found)
