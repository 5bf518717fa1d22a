"""The task: options and folders that are refused, gradients of each seed."""

import types

import pytest
import torch

from seqstruct.tasks.babi_qa import BabiQAConfig, BabiQATask


def folder_with(tmp_path, text):
    (tmp_path / "vocabulary.txt").write_text("a\nfact\nwhere\nhall\n")
    (tmp_path / "train.txt").write_text(text)
    return str(tmp_path)


def test_an_answer_that_is_not_in_the_vocabulary_is_refused(tmp_path):
    data = folder_with(tmp_path, "1 A fact.\n2 Where?\thall\t1\n3 Where?\tgarden\t1\n")
    task = BabiQATask.setup_task(BabiQAConfig(data=data))
    with pytest.raises(ValueError, match=r"train.txt: line 3: the answer 'garden' is not in the vocabulary"):
        task.load_dataset("train")
    with pytest.raises(ValueError, match=r"valid.txt: no such file"):
        task.load_dataset("valid")


@pytest.mark.parametrize(("option", "value"), [
    ("seeds", 0), ("memory", 0), ("first_seed", -1), ("first_seed", 2**63), ("renormalize", -1.0),
    ("renormalize", float("nan")),
])
def test_options_out_of_range(tmp_path, option, value):
    data = folder_with(tmp_path, "1 A fact.\n2 Where?\thall\t1\n")
    with pytest.raises(ValueError, match=f"{option}: expected"):
        BabiQATask.setup_task(BabiQAConfig(data=data, **{option: value}))


def test_a_folder_without_a_vocabulary(tmp_path):
    with pytest.raises(ValueError, match="needs a folder made by data-prep/babi.sh"):
        BabiQATask.setup_task(BabiQAConfig(data=str(tmp_path)))


def test_each_seed_is_renormalised_by_itself(tmp_path):
    data = folder_with(tmp_path, "1 A fact.\n2 Where?\thall\t1\n")
    task = BabiQATask.setup_task(BabiQAConfig(data=data, seeds=3, renormalize=5.0))
    parameters = [torch.nn.Parameter(torch.zeros(3, 2, 2)), torch.nn.Parameter(torch.zeros(3, 1))]
    parameters[0].grad = torch.stack([torch.full((2, 2), value) for value in (3.0, 0.1, 0.0)])
    parameters[1].grad = torch.tensor([[8.0], [0.2], [0.0]])
    before = [p.grad.clone() for p in parameters]
    stepped = []
    model = types.SimpleNamespace(parameters=lambda: parameters)
    task.optimizer_step(types.SimpleNamespace(step=lambda: stepped.append(1)), model, 1)
    assert stepped == [1]
    for parameter, old in zip(parameters, before, strict=True):
        torch.testing.assert_close(parameter.grad[0], old[0] * 0.5)
        torch.testing.assert_close(parameter.grad[1:], old[1:])
