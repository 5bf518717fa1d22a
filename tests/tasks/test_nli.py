"""The task `nli`: folders and options that are refused, adagrad's first sums."""

import json
import types

import pytest
import torch

from seqstruct.tasks.nli import NLIConfig, NLITask


def folder_with(tmp_path, label="yes"):
    (tmp_path / "nli.json").write_text(json.dumps({"labels": ["yes", "no"], "lowercase": False}))
    (tmp_path / "vocabulary.txt").write_text("a\nb\n")
    pair = {"premise": ["a"], "hypothesis": ["b", "a"], "label": label}
    (tmp_path / "train.jsonl").write_text(json.dumps(pair) + "\n")
    return str(tmp_path)


def test_words_count_from_one_and_batches_are_padded(tmp_path):
    task = NLITask.setup_task(NLIConfig(data=folder_with(tmp_path)))
    task.load_dataset("train")
    batch = task.datasets["train"].collater([0])
    assert batch["net_input"]["premise"].tolist() == [[1]]
    assert batch["net_input"]["hypothesis"].tolist() == [[2, 1]]
    assert batch["net_input"]["heads"] is None and task.word_vectors is None


def test_a_label_outside_the_set_is_refused(tmp_path):
    task = NLITask.setup_task(NLIConfig(data=folder_with(tmp_path, "perhaps")))
    with pytest.raises(ValueError, match=r"train.jsonl: line 1: expected a label of yes, no, got 'perhaps'"):
        task.load_dataset("train")
    with pytest.raises(ValueError, match="test.jsonl: no such file"):
        task.load_dataset("test")


def test_a_folder_or_an_option_that_will_not_do(tmp_path):
    with pytest.raises(ValueError, match="nli.json: expected a folder made by data-prep/snli.sh"):
        NLITask.setup_task(NLIConfig(data=str(tmp_path / "absent")))
    (tmp_path / "nli.json").write_text('{"labels": ["yes"]}')
    with pytest.raises(ValueError, match="nli.json: expected a folder made by data-prep/snli.sh: 'lowercase'"):
        NLITask.setup_task(NLIConfig(data=str(tmp_path)))
    with pytest.raises(ValueError, match="initial_accumulator: expected 0 or more, got -1"):
        NLITask.setup_task(NLIConfig(data=folder_with(tmp_path), initial_accumulator=-1.0))
    with pytest.raises(ValueError, match="initial_accumulator: expected 0 or more, got nan"):
        NLITask.setup_task(NLIConfig(data=folder_with(tmp_path), initial_accumulator=float("nan")))
    task = NLITask.setup_task(NLIConfig(data=folder_with(tmp_path), initial_accumulator=0.1))
    adam = torch.optim.Adam([torch.nn.Parameter(torch.zeros(2))])
    with pytest.raises(ValueError, match="expected --optimizer adagrad"):
        task.optimizer_step(types.SimpleNamespace(optimizer=adam, step=adam.step), None, 1)


@pytest.mark.training
def test_adagrad_starts_from_the_given_sums(tmp_path):
    task = NLITask.setup_task(NLIConfig(data=folder_with(tmp_path), initial_accumulator=0.1))
    ours, theirs = (torch.nn.Parameter(torch.tensor([1.0, 2.0])) for _ in range(2))
    mine = torch.optim.Adagrad([ours], lr=0.05)
    other = torch.optim.Adagrad([theirs], lr=0.05, initial_accumulator_value=0.1)
    for step in range(3):
        ours.grad, theirs.grad = (torch.tensor([0.3, -0.7]) for _ in range(2))
        task.optimizer_step(types.SimpleNamespace(optimizer=mine, step=mine.step), None, step)
        other.step()
    torch.testing.assert_close(ours, theirs)
