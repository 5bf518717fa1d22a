"""The task `recognition`: what batches hold, and every model of the recipe through it."""

from __future__ import annotations

import pytest
import torch

from seqstruct.data.recognition.folder import RecognitionRequest, read_split, write_folder
from seqstruct.data.recognition.trivial import LOOKS, trivially_right
from seqstruct.tasks.recognition import RecognitionConfig, RecognitionTask
from tests.data.recognition.test_folder import SMALL
from tests.tasks.stub import batches


def make_task(folder, **options):
    write_folder(RecognitionRequest("dyck-2-3", **SMALL), folder)
    return RecognitionTask.setup_task(RecognitionConfig(data=str(folder), **options))


@pytest.mark.parametrize("split", ["train", "valid", "valid_long", "test"])
def test_every_string_once_as_stored(tmp_path, split):
    task = make_task(tmp_path / "a")
    dictionary = task.source_dictionary
    assert task.target_dictionary is dictionary and task.longest == 33
    train, examples = (read_split(task.cfg.data, name, task.meta) for name in ("train", split))
    right, seen = trivially_right(train, examples), []
    for sample in batches(task, split, max_tokens=60):
        tokens, lengths = sample["net_input"]["src_tokens"], sample["net_input"]["src_lengths"]
        assert "next_symbols" not in sample
        for row, number in enumerate(sample["id"].tolist()):
            example, n = examples[number], int(sample["lengths"][row])
            assert int(lengths[row]) == n + 1 == len(example.string) + 1
            assert int(tokens[row, 0]) == dictionary.bos() and (tokens[row, n + 1 :] == dictionary.pad()).all()
            assert "".join(dictionary[i] for i in tokens[row, 1 : n + 1]) == example.string
            assert torch.equal(sample["symbols"][row, :n], tokens[row, 1 : n + 1])
            assert int(sample["symbols"][row, n]) == dictionary.eos()
            assert (sample["symbols"][row, n + 1 :] == dictionary.pad()).all()
            assert int(sample["target"][row]) == example.member
            assert sample["right"][row].tolist() == right[:, number].tolist() and len(LOOKS) == len(right)
            seen.append(number)
    assert sorted(seen) == list(range(SMALL[split]))


def test_what_may_come_next_is_that_of_members(tmp_path):
    task = make_task(tmp_path / "a", next_symbols=True)
    columns = [*"()[]", "$"]
    for sample in batches(task, "valid", max_tokens=60):
        members = sample["target"].bool()
        assert sample["next_symbols"].shape == (int(members.sum()), sample["symbols"].size(1), 5)
        examples = [task.dataset("valid").examples[i] for i in sample["id"][members].tolist()]
        for sets, example in zip(sample["next_symbols"], examples, strict=True):
            follow = task.language.follow(example.string)
            for t, row in enumerate(sets):
                may = {column for column, there in zip(columns, row.tolist(), strict=True) if there}
                assert may == (set(follow[t]) if t < len(follow) else set())


def test_a_batch_that_is_empty(tmp_path):
    task = make_task(tmp_path / "a")
    task.load_dataset("valid")
    assert task.dataset("valid").collater([]) == {}
